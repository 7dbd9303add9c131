"""The trial records of a run in plan order, for reports that are written when it is over."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import parse_json, without_surrogates
from vally.model.results import load_trial_result
from vally.run.results_file import index_results

if TYPE_CHECKING:
    from pathlib import Path

    from vally.model.results import TrialResult
    from vally.run.reporting import PlannedEval


class RunRecords:
    """Reads trial records back from a results file, one at a time; only where they lie is kept in memory.

    The trajectories that it returns have no events unless asked for. Raises `OSError` when the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places = {entry.item_id: (entry.offset, entry.length) for entry in index_results(path).entries}

    def of(self, planned: PlannedEval, stimulus: str | None = None, *, events: bool = False) -> Iterator[TrialResult]:
        """The records of an eval, or of one stimulus of it, in plan order; what has no record is left out."""
        with self._path.open("rb") as file:
            for part in planned.stimuli:
                if stimulus is None or part.name == stimulus:
                    for index in range(part.trials):
                        # Names of files may hold bytes that no record can.
                        place = self._places.get(without_surrogates(planned.item_id(part.name, index)))
                        if place is not None:
                            yield _record(file, *place, events=events)


def _record(file: io.BufferedReader, offset: int, length: int, *, events: bool) -> TrialResult:
    file.seek(offset)
    fields: dict[str, Any] = parse_json(file.read(length))
    trajectory = fields.get("trajectory")
    if isinstance(trajectory, dict) and not events:
        # Events are most of a record, and few reports show them.
        fields["trajectory"] = {**trajectory, "events": []}
    return load_trial_result(fields)
