"""Follows a run: which shard keys are done, what agents loaded, and the figures of the report."""

from __future__ import annotations

import time
from collections.abc import Callable

from vally import TrialDone
from vally_command_experiment.contamination import LoadedSets
from vally_command_experiment.figures import Figures

WRITE_EVERY_S = 1.0
NOT_RUN = frozenset({"cancelled", "fail-fast", "budget"})
"""Reasons by which the run itself skipped a trial; it has to be run again."""


class Progress:
    """A reporter of the command itself. `write` stores the completed keys, at most once a second."""

    def __init__(self) -> None:
        self.completed: dict[str, None] = {}
        self.loaded = LoadedSets()
        self.figures = Figures()
        self.write: Callable[[], None] = lambda: None
        self._written = float("-inf")

    def on_trial_result(self, event: TrialDone) -> None:
        """Take note of a record that is on the disk."""
        result = event.result
        if not (result.status == "skipped" and result.skip_reason in NOT_RUN):
            self.completed[event.item.item_id] = None
        self.loaded.add(event)
        self.figures.add(result, event.passed)
        if time.monotonic() - self._written >= WRITE_EVERY_S:
            self.write()
            self._written = time.monotonic()
