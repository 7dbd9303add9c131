"""What a run may cost: no trial starts once that is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vally.run.summary import cost_units

if TYPE_CHECKING:
    from vally.run.stopping import Stopping
    from vally.run.summary import RunTally
    from vally.run.verdicts import TrialFacts


class Budgets:
    """Compares the sums of a run with its limits; `max_cost` is (amount, unit), None means no limit."""

    def __init__(
        self,
        tally: RunTally,
        stopping: Stopping,
        *,
        max_cost: tuple[float, str] | None,
        max_tokens: int | None,
        warn: Callable[[str], None],
    ) -> None:
        self._tally = tally
        self._stopping = stopping
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._warn = warn
        self._warned = False

    def check(self) -> None:
        """Stop the run when a limit is reached; to be called before a trial starts."""
        if self._max_tokens is not None and self._tally.tokens >= self._max_tokens:
            self._stopping.stop("budget-tokens")
        if self._max_cost is not None:
            amount, unit = self._max_cost
            if self._tally.cost(unit) >= amount:
                self._stopping.stop("budget-cost")

    def note(self, facts: TrialFacts) -> None:
        """Say once that a trial which ran reports no cost in the unit of the limit, so that it counts as 0."""
        if self._max_cost is None or self._warned or facts.status == "skipped":
            return
        unit = self._max_cost[1]
        if not cost_units(unit).keys() & {reported for reported, _ in facts.costs}:
            self._warned = True
            self._warn(
                f"--max-cost: trial {facts.trial_index + 1} of '{facts.stimulus}' reports no cost in {unit}; "
                "such trials count as 0"
            )
