"""What is remembered of a run until its report is written: sums per stimulus, and which trials will be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vally import TrialDone

MAX_SHOWN = 3


@dataclass(slots=True)
class StimulusFigures:
    """Sums over the finished trials of a stimulus; `shown` holds the item ids of trials with a section."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    duration_ms: int = 0
    measured: int = 0
    finished: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, event: TrialDone, *, skip_grade: bool) -> None:
        """Count one finished trial."""
        result = event.result
        self.finished += 1
        self.duration_ms += result.duration_ms
        metrics = result.trajectory.metrics if result.trajectory else None
        if metrics is not None:
            self.measured += 1
            self.turns += metrics.turn_count or 0
            self.tool_calls += metrics.tool_call_count or 0
            self.tokens += metrics.token_usage.total_tokens if metrics.token_usage else 0
        if self._worth_showing(event, skip_grade):
            self.shown.append(result.item_id)

    def _worth_showing(self, event: TrialDone, skip_grade: bool) -> bool:
        if event.item.total_trials == 1:
            return True
        good = event.passed is True or event.result.status == "skipped" or skip_grade
        return not good and len(self.shown) < MAX_SHOWN

    def mean(self, total: int) -> float | None:
        """Mean over the trials that have metrics."""
        return total / self.measured if self.measured else None
