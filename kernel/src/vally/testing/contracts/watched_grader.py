"""A grader that is watched for changes of what it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vally.testing.hosts import plugin_host

if TYPE_CHECKING:
    from vally.model.results import GraderResult
    from vally.records import GraderSpec
    from vally.run.inputs import GraderInput


class WatchedGrader:
    """Grades like the grader of a record; `changed` tells whether the trajectory it was given was changed."""

    def __init__(self, record: GraderSpec) -> None:
        self._grader = plugin_host(record).create(record)
        self._blocking = record.blocking
        self.changed = False
        self.record = replace(record, factory=lambda: self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grader, name)

    async def grade(self, grader_input: GraderInput[Any]) -> GraderResult:
        """Grade, and look at the trajectory before and after."""
        from vally.run.calling import invoke

        given = grader_input.trajectory, grader_input.full_trajectory
        before = [item.model_copy(deep=True) for item in given]
        try:
            result: GraderResult = await invoke(self._grader.grade, grader_input, blocking=self._blocking)
        finally:
            self.changed |= before != list(given)
        return result
