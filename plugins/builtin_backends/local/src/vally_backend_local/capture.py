"""What a trial changed and what is kept of it, put into its trajectory and its output directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vally import Artifacts, InvalidGlob, PluginHost, Redactor, Stimulus, Trajectory, TurnDiff, atomic_write
from vally_backend_local.artifacts import copy_artifacts
from vally_backend_local.patches import DiffResult
from vally_backend_local.selection import PathFilter
from vally_backend_local.snapshots import Snapshotter

INLINE_BYTES = 262_144
PATCH_NAME = "workspace.patch"


@dataclass(frozen=True)
class Needs:
    """Which diffs the graders of a stimulus read."""

    diff: bool
    turn_diffs: bool


def diff_needs(host: PluginHost, stimulus: Stimulus) -> Needs:
    """Ask the configs of all grader entries what they read."""
    diff = turn_diffs = False
    for entry in stimulus.graders:
        evidence = _evidence(host, entry.type, entry.config)
        diff = diff or not evidence.isdisjoint({"diff", "turn-diff"})
        turn_diffs = turn_diffs or ("turn-diff" in evidence and entry.turn is not None)
    return Needs(diff, turn_diffs and len(stimulus.turns) > 1)


def _evidence(host: PluginHost, keyword: str, config: Mapping[str, object]) -> frozenset[str]:
    record = host.get("grader", keyword)
    if record is None:
        return frozenset()
    try:
        evidence = getattr(host.parse_config(record, config, lenient=True), "evidence", None)
    except Exception:
        # Grading will say what is wrong with it.
        return frozenset()
    return frozenset(evidence()) if callable(evidence) else frozenset()


def capture_diff(snapshotter: Snapshotter, trajectory: Trajectory, patch: Path, needs: Needs) -> None:
    """Put the change of the run, and of each turn when wanted, into the trajectory; the patch goes to `patch`.

    Never fails: what could not be captured is told in the trajectory. Diffs are inline here, whatever their size.
    """
    captured = snapshotter.capture(patch)
    trajectory.diff, trajectory.diff_error = captured.diff.text, captured.diff.error
    if needs.turn_diffs:
        trajectory.turn_diffs = [_turn_diff(turn.turn, turn.diff) for turn in snapshotter.turn_diffs()]


def _turn_diff(turn: int, result: DiffResult) -> TurnDiff:
    if result.text is None:
        return TurnDiff(turn=turn, status="failed", error=result.error)
    return TurnDiff(turn=turn, status="captured", diff=result.text)


@dataclass(frozen=True)
class Sidecars:
    """Writes what is too large for a record beside it; everything written is redacted.

    `output_dir` is the directory of the trial, made when there is something to write, and `run_dir` the one that
    stored paths are relative to.
    """

    output_dir: Path
    run_dir: Path
    redactor: Redactor

    def write_patch(self, patch: Path) -> None:
        """Copy the patch of the run, when there is one."""
        if patch.is_file():
            self._write(PATCH_NAME, self.redactor.patch(patch.read_bytes()))

    def move_large_diffs(self, trajectory: Trajectory) -> None:
        """Replace diffs that are too large for a record by the paths of files."""
        if trajectory.diff is not None:
            trajectory.diff_path = self._moved("workspace.diff", trajectory.diff)
            trajectory.diff = None if trajectory.diff_path else trajectory.diff
        for entry in trajectory.turn_diffs or ():
            if entry.diff is not None:
                entry.diff_path = self._moved(f"turn-{entry.turn}.diff", entry.diff)
                entry.diff = None if entry.diff_path else entry.diff

    def _moved(self, name: str, diff: str) -> str | None:
        """Return the path of a new file, None when the diff may stay where it is."""
        if len(diff) * 4 <= INLINE_BYTES:
            return None
        data = self.redactor.text(diff).encode("utf-8", "replace")
        return self._write(name, data) if len(data) > INLINE_BYTES else None

    def _write(self, name: str, data: bytes) -> str:
        self.output_dir.mkdir(parents=True, exist_ok=True)
        path = self.output_dir / name
        atomic_write(path, data)
        return path.relative_to(self.run_dir).as_posix()


def keep_artifacts(artifacts: Artifacts, workspace: Path, target: Path) -> list[str]:
    """Copy what `artifacts` selects to `target` and return warnings; raises OSError when that cannot be written."""
    if not artifacts.include:
        return []
    try:
        wanted, refused = PathFilter(artifacts.include), PathFilter(artifacts.exclude)
    except InvalidGlob as error:
        return [f"artifacts were not copied: {error}"]
    return copy_artifacts(
        workspace, target, include=wanted.matches, exclude=refused.matches, enter_git=wanted.enters_git
    )
