"""The unified diff that a grader sees: recorded inline, in a sidecar file, or given by the user."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import parse_json

if TYPE_CHECKING:
    from vally.model.trajectory import Trajectory, TurnDiff
    from vally.run.grading import GradingRequest

NOT_RECORDED = "It was not recorded."
MALFORMED = "The recorded turn diff is malformed."


def view_diff(request: GradingRequest, turn: int | None) -> tuple[str | None, str | None]:
    """Return (diff, None), or (None, the reason why there is none), for the run or for one conversation turn."""
    trajectory = request.trajectory
    if turn is None or (turn == 0 and _is_single_turn(request)):
        return _run_diff(trajectory, request.run_dir, request.diff_file)
    return _turn_diff(trajectory, turn, request.run_dir)


def _is_single_turn(request: GradingRequest) -> bool:
    if len(request.stimulus.turns) > 1:
        return False
    return len({event.turn for event in request.trajectory.events if event.turn is not None}) <= 1


def recorded_diff(trajectory: Trajectory, run_dir: Path | None) -> tuple[str | None, str | None]:
    """The recorded diff of the whole run, or None and the reason; `run_dir` resolves sidecars."""
    return _run_diff(trajectory, run_dir, None)


def recorded_turn_diff(entry: TurnDiff, run_dir: Path | None) -> tuple[str | None, str | None]:
    """The recorded diff of one conversation turn, or None and the reason."""
    return _turn_entry(entry, run_dir)


def _run_diff(trajectory: Trajectory, run_dir: Path | None, diff_file: Path | None) -> tuple[str | None, str | None]:
    if trajectory.diff is not None:
        return trajectory.diff, None
    if trajectory.diff_path is not None:
        return _sidecar(trajectory.diff_path, run_dir)
    if diff_file is not None:
        return _read(diff_file, str(diff_file))
    if trajectory.diff_error:
        return None, f"Capturing it failed: {trajectory.diff_error}"
    return None, NOT_RECORDED


def _turn_diff(trajectory: Trajectory, turn: int, run_dir: Path | None) -> tuple[str | None, str | None]:
    entries = [entry for entry in trajectory.turn_diffs or () if entry.turn == turn]
    if not entries:
        return None, NOT_RECORDED
    if len(entries) > 1:
        return None, MALFORMED
    return _turn_entry(entries[0], run_dir)


def _turn_entry(entry: TurnDiff, run_dir: Path | None) -> tuple[str | None, str | None]:
    status = entry.status or ("failed" if entry.error else "captured")
    if status == "failed":
        return None, f"Capturing it failed: {entry.error or 'no reason was recorded'}"
    if status != "captured" or (entry.diff is None) == (entry.diff_path is None):
        return None, MALFORMED
    if entry.diff is not None:
        return entry.diff, None
    assert entry.diff_path is not None
    return _sidecar(entry.diff_path, run_dir)


def _sidecar(stored: str, run_dir: Path | None) -> tuple[str | None, str | None]:
    path = sidecar_path(stored, run_dir)
    return (None, f"The diff file '{stored}' cannot be read.") if path is None else _read(path, stored)


def sidecar_path(stored: str, run_dir: Path | None) -> Path | None:
    """The file that a record names; None when it is not there, or the path is absolute or leaves the run directory."""
    path = PurePosixPath(stored)
    if run_dir is None or path.is_absolute() or ".." in path.parts or "\\" in stored or ":" in stored:
        return None
    # In an experiment the run directory itself works too: the file lies one level below, in the variant's directory.
    for base in (run_dir, *(child for child in sorted(run_dir.glob("*")) if child.is_dir())):
        candidate = base / path
        if candidate.is_file() and candidate.resolve().is_relative_to(run_dir.resolve()):
            return candidate
    return None


def sidecar_object(stored: object, run_dir: Path | None) -> dict[str, Any] | None:
    """The JSON object in a file that a record names; None when it is not there or cannot be read."""
    path = sidecar_path(stored, run_dir) if isinstance(stored, str) else None
    if path is None:
        return None
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _read(path: Path, shown: str) -> tuple[str | None, str | None]:
    try:
        return path.read_bytes().decode("utf-8", errors="replace"), None
    except OSError:
        return None, f"The diff file '{shown}' cannot be read."
