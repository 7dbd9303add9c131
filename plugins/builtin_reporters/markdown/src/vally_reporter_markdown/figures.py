"""Figures of one stimulus over its trials, and which of them have a section of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vally import resolve_grade_pass

if TYPE_CHECKING:
    from vally import TrialResult

MAX_SHOWN = 3


@dataclass(slots=True)
class StimulusFigures:
    """Sums over the trials of a stimulus; `measured` of them have metrics, `shown` are the indices with a section."""

    trials: int = 0
    measured: int = 0
    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    duration_ms: int = 0
    shown: list[int] = field(default_factory=list)

    @classmethod
    def over(cls, results: Iterable[TrialResult], threshold: float | None, *, verbose: bool) -> StimulusFigures:
        """The figures of these trials, which come in the order of the plan."""
        figures = cls()
        for result in results:
            figures._add(result)
            # As on the console: the only trial always, of several those that failed or broke.
            if verbose or result.total_trials == 1 or (_is_bad(result, threshold) and len(figures.shown) < MAX_SHOWN):
                figures.shown.append(result.trial_index)
        return figures

    def _add(self, result: TrialResult) -> None:
        self.trials += 1
        self.duration_ms += result.duration_ms
        metrics = result.trajectory.metrics if result.trajectory else None
        if metrics is not None:
            self.measured += 1
            self.turns += metrics.turn_count or 0
            self.tool_calls += metrics.tool_call_count or 0
            self.tokens += metrics.token_usage.total_tokens if metrics.token_usage else 0

    def mean(self, total: int) -> float | None:
        """Mean over the trials that have metrics; None without any."""
        return total / self.measured if self.measured else None


def _is_bad(result: TrialResult, threshold: float | None) -> bool:
    if result.status == "error":
        return True
    grade = result.grade_result if result.status == "success" else None
    return grade is not None and resolve_grade_pass(grade, threshold) is not True
