"""The tables of the report; in each the last column is the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import one_decimal, two_decimals
from vally_reporter_markdown.text import NO_VALUE, cell, duration, first_cell, percent, row

if TYPE_CHECKING:
    from vally import EvalSummary, GraderResult
    from vally_reporter_markdown.figures import StimulusFigures

PASS, FAIL, ERROR, SKIPPED, NOT_GRADED = "✅ PASS", "❌ FAIL", "❌ ERROR", "⏭️ SKIPPED", "⏭️ not graded"
_VERDICTS = {"pass": PASS, "fail": FAIL, "error": ERROR, "skipped": SKIPPED}
_NUMBER = "---:"
_EVALS = {
    "Eval": "---",
    "Model": "---",
    "Score": _NUMBER,
    "Threshold": _NUMBER,
    "Stimuli": _NUMBER,
    "Trials passed": _NUMBER,
    "Duration": _NUMBER,
    "Result": "---",
}
_STIMULI = {
    "Stimulus": "---",
    "Trials": _NUMBER,
    "Score": _NUMBER,
    "pass@k": _NUMBER,
    "pass^k": _NUMBER,
    "Flaky": "---",
    "Turns": _NUMBER,
    "Tool Calls": _NUMBER,
    "Tokens": _NUMBER,
    "Duration": _NUMBER,
    "Result": "---",
}
_GRADERS = {"Grader": "---", "Score": _NUMBER, "Evidence": "---", "Result": "---"}


def eval_table(items: Iterable[EvalSummary], *, skip_grade: bool) -> Iterator[str]:
    """A row per eval and model."""
    yield from _head(_EVALS)
    for item in items:
        stimuli = stimulus_stats(item)
        passed = sum(stimulus.get("verdict") == "pass" for stimulus in stimuli)
        score = ((item.stats or {}).get("score") or {}).get("mean")
        yield row(
            first_cell(item.name),
            cell(item.model),
            _score(score, skip_grade),
            NO_VALUE if item.threshold is None else two_decimals(item.threshold),
            f"{passed}/{item.stimuli_total}",
            f"{_sum(stimuli, 'passed')}/{_sum(stimuli, 'trials')}",
            duration(item.duration_ms),
            _eval_result(item, stimuli, skip_grade),
        )


def _eval_result(item: EvalSummary, stimuli: Sequence[Mapping[str, Any]], skip_grade: bool) -> str:
    if item.passed:
        return NOT_GRADED if skip_grade else PASS
    verdicts = {stimulus.get("verdict") for stimulus in stimuli}
    return ERROR if "error" in verdicts and not verdicts & {"pass", "fail"} else FAIL


def stimulus_table(rows: Iterable[tuple[Mapping[str, Any], StimulusFigures]], *, skip_grade: bool) -> Iterator[str]:
    """A row per stimulus, from its statistics in the summary and the figures over its trials."""
    yield from _head(_STIMULI)
    for stats, figures in rows:
        measured = figures.measured > 0
        yield row(
            first_cell(str(stats.get("name"))),
            f"{stats.get('passed') or 0}/{stats.get('trials') or 0}",
            _score(stats.get("score"), skip_grade),
            _score(stats.get("passAtK"), skip_grade),
            _score(stats.get("passToTheK"), skip_grade),
            _flaky(stats),
            _mean(figures.mean(figures.turns)),
            _mean(figures.mean(figures.tool_calls)),
            f"{figures.tokens:,}" if measured else NO_VALUE,
            duration(figures.duration_ms) if figures.trials else NO_VALUE,
            _VERDICTS.get(str(stats.get("verdict")), NOT_GRADED),
        )


def _flaky(stats: Mapping[str, Any]) -> str:
    if stats.get("passRate") is None:
        return NO_VALUE
    return f"yes ({percent(float(stats.get('flakinessPercent') or 0))})" if stats.get("flaky") else "no"


def grader_table(details: Sequence[GraderResult]) -> Iterator[str]:
    """A row per grader, nested ones with an arrow."""
    yield from _head(_GRADERS)
    yield from _grader_rows(details, "")


def _grader_rows(details: Sequence[GraderResult], indent: str) -> Iterator[str]:
    for item in details:
        result = ERROR if item.status == "error" else "✅" if item.passed else "❌"
        name = f"{indent}{first_cell(item.name or item.grader_type or '')}"
        yield row(name, two_decimals(item.score), cell(item.evidence), result)
        yield from _grader_rows(item.details or (), f"{indent}↳ ")


def stimulus_stats(item: EvalSummary) -> Sequence[Mapping[str, Any]]:
    """The statistics of the stimuli of an eval."""
    stimuli: Sequence[Mapping[str, Any]] = (item.stats or {}).get("stimuli") or []
    return stimuli


def _head(columns: Mapping[str, str]) -> Iterator[str]:
    yield row(*columns)
    yield f"|{'|'.join(columns.values())}|"


def _sum(stimuli: Sequence[Mapping[str, Any]], key: str) -> int:
    return sum(int(stimulus.get(key) or 0) for stimulus in stimuli)


def _score(value: Any, skip_grade: bool) -> str:
    return NO_VALUE if value is None or skip_grade else two_decimals(float(value))


def _mean(value: float | None) -> str:
    return NO_VALUE if value is None else one_decimal(value)
