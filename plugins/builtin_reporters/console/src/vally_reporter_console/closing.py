"""The summary of a run: one line per eval, and the last line with the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import (
    Style,
    cells,
    counted_evals,
    elapsed,
    eval_figures,
    is_ungraded,
    name_line,
    one_line,
    pad,
    plural,
    run_word,
    stimulus_stats,
)

if TYPE_CHECKING:
    from vally import EvalSummary, RunSummary

RULE = "─" * 13
_COLORS = {"partial": "yellow", "passed": "green", "failed": "red"}
_GAPS = ("  ", "   ", "   ")
_INDENT = " " * 6


def summary_lines(summary: RunSummary, style: Style, *, quiet: bool) -> Iterator[str]:
    """The block `Summary` and the verdict of the run; `quiet` leaves the lines with verdicts."""
    if summary.evals and not quiet:
        yield "Summary"
        yield RULE
    variants = len({item.variant for item in summary.evals}) > 1
    rows = [_eval_row(item, variants) for item in summary.evals]
    widths = [max((cells(row[column]) for row in rows), default=0) for column in range(len(_GAPS))]
    for item, row in zip(summary.evals, rows, strict=True):
        padded = "".join(pad(text, width) + gap for text, width, gap in zip(row, widths, _GAPS, strict=False))
        yield f"  {style.glyph(_glyph(item))} {padded}{row[-1]}"
        if not quiet:
            yield from (style.paint(f"{_INDENT}{line}", "dim") for line in _explanations(item))
    if summary.evals and not quiet:
        yield ""
    yield verdict_line(summary, style)


def _glyph(item: EvalSummary) -> str:
    if is_ungraded(item):
        return "○"
    return "✔" if item.passed else "✘"


def _explanations(item: EvalSummary) -> Iterator[str]:
    """What errors were about, and how sure the figures are."""
    if item.error and not item.passed:
        yield f"first error: {one_line(item.error)}"
    figures = eval_figures(item)
    if figures:
        yield " · ".join(figures)


def _eval_row(item: EvalSummary, variants: bool) -> tuple[str, str, str, str]:
    stimuli = stimulus_stats(item)
    passed = sum(stimulus.get("verdict") == "pass" for stimulus in stimuli)
    variant = f" / {item.variant}" if variants else ""
    name = name_line(f"{item.name}{variant} ({item.model})")
    return name, one_line(item.reason), f"{passed}/{item.stimuli_total} stimuli passed", _trials(stimuli)


def _trials(stimuli: Sequence[Mapping[str, Any]]) -> str:
    counts = dict.fromkeys(("trials", "pass", "fail", "error", "skipped", "not graded"), 0)
    for stimulus in stimuli:
        trials, passed, errors, skipped = (
            int(stimulus.get(key) or 0) for key in ("trials", "passed", "errors", "skipped")
        )
        rest = trials - passed - errors - skipped
        # Without a pass rate no trial of the stimulus has a verdict.
        other = "not graded" if stimulus.get("passRate") is None else "fail"
        for key, number in (("trials", trials), ("pass", passed), ("error", errors), ("skipped", skipped)):
            counts[key] += number
        counts[other] += rest
    total = counts.pop("trials")
    words = [
        plural(number, word) if word == "error" else f"{number} {word}" for word, number in counts.items() if number
    ]
    return f"{plural(total, 'trial')}: {', '.join(words) or '0 pass'}"


def verdict_line(summary: RunSummary, style: Style) -> str:
    """`PASSED`, `FAILED`, `SKIPPED` or `PARTIAL (<stop reason>)` and the figures of the run."""
    word = run_word(summary)
    shown = f"PARTIAL ({summary.stop_reason or 'incomplete'})" if word == "partial" else word.upper()
    totals = summary.totals
    parts = [
        counted_evals(summary),
        plural(totals.trials, "trial"),
        f"{totals.flaky_stimuli} flaky",
        plural(totals.errors, "error"),
        elapsed(summary.duration_ms),
        plural(totals.total_tokens, "token"),
    ]
    return f"{style.paint(shown, _COLORS[word]) if word in _COLORS else shown}  {' · '.join(parts)}"
