"""A recorded trajectory made ready for graders: cut ones completed, places found again in a moved run directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from vally.model.trajectory import RecordError, Trajectory, load_trajectory
from vally.run.diffs import sidecar_object

if TYPE_CHECKING:
    from vally.run.regrading.source import Document

_TRIAL_PARTS = 4
"""Below a run directory lie eval, stimulus, model and trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Directories and files given by the user, for what records do not tell."""

    run_dir: Path | None = None
    workspace: Path | None = None
    artifact_dir: Path | None = None
    diff_file: Path | None = None

    def run_dir_of(self, document: Document) -> Path | None:
        """The directory that resolves what a document names."""
        return self.run_dir or document.source.run_dir


def recorded_trajectory(
    record: Mapping[str, Any], run_dir: Path | None, on_warning: Callable[[str, str], None]
) -> Trajectory:
    """The trajectory of a record, whole if that was kept. Raises `RecordError`.

    `on_warning` gets a text and a code.
    """
    trajectory = load_trajectory(record.get("trajectory"), "/trajectory")
    if trajectory.truncated:
        trajectory = _whole(trajectory, run_dir) or trajectory
        if trajectory.truncated:
            on_warning("the trajectory was cut, and the whole one cannot be read", "graded-truncated-trajectory")
    return trajectory


def _whole(trajectory: Trajectory, run_dir: Path | None) -> Trajectory | None:
    document = sidecar_object(trajectory.trajectory_path, run_dir)
    if document is None:
        return None
    try:
        whole = load_trajectory(document)
    except (ValueError, RecordError):
        return None
    return whole.model_copy(update={"truncated": None})


def located(trajectory: Trajectory, places: Places, run_dir: Path | None) -> Trajectory:
    """The trajectory with the directories that graders read."""
    update: dict[str, Any] = {}
    if places.artifact_dir is not None:
        update["artifact_dir"] = str(places.artifact_dir)
    elif trajectory.artifact_dir:
        update["artifact_dir"] = _artifact_dir(trajectory.artifact_dir, run_dir)
    if places.workspace is not None:
        update |= {"work_dir": str(places.workspace), "workspace_status": None}
    return trajectory.model_copy(update=update) if update else trajectory


def _artifact_dir(recorded: str, run_dir: Path | None) -> str:
    """The recorded directory, or where it lies when the run directory was moved."""
    if run_dir is None or Path(recorded).is_dir():
        return recorded
    windows = PureWindowsPath(recorded)
    path = windows if windows.is_absolute() and not PurePosixPath(recorded).is_absolute() else PurePosixPath(recorded)
    if ".." in path.parts:
        return recorded
    if not path.is_absolute():
        return str(run_dir / path.as_posix())
    parts = path.parts
    for count in (_TRIAL_PARTS + 1, _TRIAL_PARTS + 2):
        candidate = run_dir.joinpath(*parts[-count:])
        if len(parts) > count and candidate.is_dir():
            return str(candidate)
    return recorded
