"""The tables of an eval and of a trial; in each the last column is the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import (
    fixed,
    markdown_cell,
    markdown_head,
    markdown_name,
    markdown_row,
    one_decimal,
    report_duration,
    two_decimals,
)

if TYPE_CHECKING:
    from vally import GraderResult
    from vally_reporter_markdown.figures import StimulusFigures

NO_VALUE = "–"
ERROR, NOT_GRADED = "❌ ERROR", "⏭️ not graded"
_VERDICTS = {"pass": "✅ PASS", "fail": "❌ FAIL", "error": ERROR, "skipped": "⏭️ SKIPPED"}
_NUMBER = "---:"
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


def stimulus_table(rows: Iterable[tuple[Mapping[str, Any], StimulusFigures]], *, skip_grade: bool) -> Iterator[str]:
    """A row per stimulus, from its statistics in the summary and the figures over its trials."""
    yield from markdown_head(_STIMULI)
    for stats, figures in rows:
        yield markdown_row(
            markdown_name(str(stats.get("name"))),
            f"{stats.get('passed') or 0}/{stats.get('trials') or 0}",
            _score(stats.get("score"), skip_grade),
            _score(stats.get("passAtK"), skip_grade),
            _score(stats.get("passToTheK"), skip_grade),
            _flaky(stats),
            _mean(figures.mean(figures.turns)),
            _mean(figures.mean(figures.tool_calls)),
            f"{figures.tokens:,}" if figures.measured else NO_VALUE,
            report_duration(figures.duration_ms) if figures.trials else NO_VALUE,
            _VERDICTS.get(str(stats.get("verdict")), NOT_GRADED),
        )


def _flaky(stats: Mapping[str, Any]) -> str:
    if stats.get("passRate") is None:
        return NO_VALUE
    return f"yes ({fixed(float(stats.get('flakinessPercent') or 0), 0)}%)" if stats.get("flaky") else "no"


def grader_table(details: Sequence[GraderResult]) -> Iterator[str]:
    """A row per grader, nested ones with an arrow."""
    yield from markdown_head(_GRADERS)
    yield from _grader_rows(details, "")


def _grader_rows(details: Sequence[GraderResult], indent: str) -> Iterator[str]:
    for item in details:
        result = ERROR if item.status == "error" else "✅" if item.passed else "❌"
        name = f"{indent}{markdown_name(item.name or item.grader_type or '')}"
        yield markdown_row(name, two_decimals(item.score), markdown_cell(item.evidence), result)
        yield from _grader_rows(item.details or (), f"{indent}↳ ")


def _score(value: Any, skip_grade: bool) -> str:
    return NO_VALUE if value is None or skip_grade else two_decimals(float(value))


def _mean(value: float | None) -> str:
    return NO_VALUE if value is None else one_decimal(value)
