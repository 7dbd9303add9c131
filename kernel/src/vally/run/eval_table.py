"""The table of the evals of a run as Markdown, for every report that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally.run.verdict_words import counted_evals, is_ungraded, run_word
from vally.text.markdown import NO_VALUE, markdown_head, markdown_name, markdown_row, report_duration
from vally.text.numbers import two_decimals

if TYPE_CHECKING:
    from vally.model.results import EvalSummary, RunSummary

PASS, FAIL, ERROR, NOT_GRADED = "✅ PASS", "❌ FAIL", "❌ ERROR", "⏭️ not graded"
# A partial run never passed.
_WORDS = {"passed": "**✅ PASSED**", "failed": "**❌ FAILED**", "partial": "**❌ FAILED**", "skipped": "**⏭️ SKIPPED**"}
_NUMBER = "---:"
_COLUMNS = {
    "Eval": "---",
    "Model": "---",
    "Score": _NUMBER,
    "Threshold": _NUMBER,
    "Stimuli": _NUMBER,
    "Trials passed": _NUMBER,
    "Duration": _NUMBER,
    "Result": "---",
}


def eval_table(items: Sequence[EvalSummary], *, skip_grade: bool = False) -> Iterator[str]:
    """Lines of a table with a row per eval x variant x model; the last cell of a row is the result."""
    yield from markdown_head(_COLUMNS)
    several = len({item.variant for item in items}) > 1
    for item in items:
        stimuli = stimulus_stats(item)
        score = ((item.stats or {}).get("score") or {}).get("mean")
        name = markdown_name(item.name)
        yield markdown_row(
            f"{name} / {markdown_name(item.variant)}" if several else name,
            markdown_name(item.model),
            NO_VALUE if score is None or skip_grade else two_decimals(float(score)),
            NO_VALUE if item.threshold is None else two_decimals(item.threshold),
            f"{sum(stimulus.get('verdict') == 'pass' for stimulus in stimuli)}/{item.stimuli_total}",
            f"{_sum(stimuli, 'passed')}/{_sum(stimuli, 'trials')}",
            report_duration(item.duration_ms),
            eval_result(item, skip_grade=skip_grade),
        )


def run_verdict(summary: RunSummary) -> str:
    """The verdict of a run in one line of Markdown, a partial one with its reason in front."""
    totals = summary.totals
    word = _WORDS[run_word(summary)]
    if summary.partial:
        word = f"**⚠️ PARTIAL ({summary.stop_reason or 'incomplete'})** {word}"
    trials = f"{totals.trials:,} trial{'' if totals.trials == 1 else 's'}"
    return (
        f"{word}: {counted_evals(summary)}, "
        f"{trials} ({totals.passed} pass, {totals.failed} fail, {totals.errors} errors, "
        f"{totals.skipped} skipped), {totals.flaky_stimuli} flaky"
    )


def eval_result(item: EvalSummary, *, skip_grade: bool = False) -> str:
    """`✅ PASS`, `❌ FAIL`, `❌ ERROR` when nothing but errors came of it, `⏭️ not graded`."""
    if item.passed:
        return NOT_GRADED if skip_grade or is_ungraded(item) else PASS
    verdicts = {stimulus.get("verdict") for stimulus in stimulus_stats(item)}
    return ERROR if "error" in verdicts and not verdicts & {"pass", "fail"} else FAIL


def stimulus_stats(item: EvalSummary) -> Sequence[Mapping[str, Any]]:
    """The statistics of the stimuli of an eval, in plan order."""
    stimuli: Sequence[Mapping[str, Any]] = (item.stats or {}).get("stimuli") or []
    return stimuli


def _sum(stimuli: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(int(stimulus.get(key) or 0) for stimulus in stimuli)
