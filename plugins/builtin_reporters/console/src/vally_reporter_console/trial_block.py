"""The block of one trial in a card: metrics and graders, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vally import Style, cells, elapsed, name_line, one_line, two_decimals
from vally_reporter_console.evidence import EvidenceLayout

if TYPE_CHECKING:
    from vally import GraderResult, Metrics
    from vally_reporter_console.stimulus_state import ShownTrial

METRICS_RULE = "─" * 13
GRADERS_RULE = "─" * 41


@dataclass(frozen=True, slots=True)
class TrialLayout:
    """How the block of a trial is laid out."""

    style: Style
    evidence: EvidenceLayout

    def lines(self, trial: ShownTrial, planned: int) -> Iterator[str]:
        """The lines of the block; one that is the only trial of its stimulus has no line of its own."""
        if planned > 1:
            yield self._head(trial, planned)
        if trial.status == "error":
            yield f"{self.style.glyph('⚠', 'ERROR')}  {one_line(trial.error or 'unknown error')}"
        elif trial.status == "skipped":
            yield f"{self.style.glyph('○', 'SKIPPED')}  {one_line(trial.skip_reason or 'no reason given')}"
        else:
            yield "Metrics"
            yield METRICS_RULE
            yield from (f"  {label:<11} {value}" for label, value in _metrics(trial))
            if trial.grade is not None:
                yield from self._graders(trial.grade)

    def _head(self, trial: ShownTrial, planned: int) -> str:
        glyph, word = _outcome(trial)
        score = f"  score {two_decimals(trial.grade.score)}" if trial.grade is not None else ""
        return f"Trial {trial.index + 1}/{planned}  {self.style.glyph(glyph, word)}{score}"

    def _graders(self, grade: GraderResult) -> Iterator[str]:
        details = grade.details or []
        errors = sum(item.status == "error" for item in details)
        passed = sum(item.passed and item.status != "error" for item in details)
        yield f"Graders ({passed}/{len(details)})"
        yield GRADERS_RULE
        for item in details:
            yield from self._grader(item, 2)
        yield ""
        yield _count(len(details) - passed - errors, errors)

    def _grader(self, item: GraderResult, indent: int) -> Iterator[str]:
        glyph = "⚠" if item.status == "error" else "✔" if item.passed else "✘"
        name = name_line(item.name or item.grader_type or "")
        head = f"{' ' * indent}{self.style.glyph(glyph)} {name}  "
        width = indent + 2 + cells(name) + 2
        # What kept a grader from a verdict stands at the end of its evidence.
        evidence = replace(self.evidence, whole=True) if item.status == "error" else self.evidence
        first, *more = evidence.lines(item.evidence, head=width, indent=indent + 4)
        yield head + first
        yield from more
        for detail in item.details or ():
            yield from self._grader(detail, indent + 2)


def _outcome(trial: ShownTrial) -> tuple[str, str]:
    if trial.status == "skipped":
        return "○", "skipped"
    if trial.status == "error":
        return "⚠", "error"
    if trial.grade is None:
        return "○", "not graded"
    return {True: ("✔", "pass"), False: ("✘", "fail"), None: ("⚠", "error")}[trial.passed]


def _metrics(trial: ShownTrial) -> Iterator[tuple[str, str]]:
    metrics = trial.metrics
    if metrics is not None:
        yield "Tokens", f"{metrics.token_usage.total_tokens if metrics.token_usage else 0:,}"
        yield "Turns", f"{metrics.turn_count or 0:,}"
        yield "Tool calls", f"{metrics.tool_call_count or 0:,}"
        if metrics.wall_time_ms is not None:
            yield "Wall time", elapsed(metrics.wall_time_ms)
        yield "Errors", f"{metrics.error_count or 0:,}"
        skills = _skills(metrics)
        if skills:
            yield "Skills used", skills
    yield "Model", name_line(trial.model)
    if trial.end_reason not in (None, "completed"):
        yield "Ended", name_line(str(trial.end_reason))


def _skills(metrics: Metrics) -> str:
    return ", ".join(name_line(name) for name in sorted(metrics.skill_activation_breakdown or {}))


def _count(failed: int, errors: int) -> str:
    if errors:
        return f"{failed} grader(s) failed, {errors} grader error(s)."
    return f"{failed} grader(s) failed." if failed else "All graders passed."
