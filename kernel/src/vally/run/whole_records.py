"""A trial record with its whole trajectory, also when that was cut in the results file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.results import load_trial_result
from vally.model.trajectory import RecordError
from vally.run.diffs import sidecar_object

if TYPE_CHECKING:
    from vally.model.results import TrialResult
    from vally.run.stored_trials import TrialEntry


def load_whole(record: dict[str, Any], entry: TrialEntry, run_dir: Path) -> tuple[TrialResult | None, str | None]:
    """The result of a trial, and a warning when its cut trajectory is all there is or the record is none.

    `run_dir` holds the results file; the paths in records are relative to it.
    """
    warning = None
    trajectory = record.get("trajectory")
    if isinstance(trajectory, dict) and trajectory.get("truncated") is True:
        whole = sidecar_object(trajectory.get("trajectoryPath"), run_dir)
        if whole is None:
            warning = f"stimulus '{entry.stimulus}': the trajectory was cut, and its file is not there any more"
        else:
            record = {**record, "trajectory": whole}
    try:
        return load_trial_result(record, trial_index=entry.trial_index, total_trials=entry.total), warning
    except RecordError as error:
        return None, f"stimulus '{entry.stimulus}': {error.message} [bad-record]"
