"""What a trial changed and what is kept of it, put into its trajectory and its output directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from vally import Artifacts, InvalidGlob, Redactor, Trajectory, TrialOptions, TurnDiff, atomic_write
from vally_backend_local.agent_part import AgentPart
from vally_backend_local.artifacts import copy_artifacts
from vally_backend_local.needs import Needs
from vally_backend_local.patches import DiffResult
from vally_backend_local.preparing import Place
from vally_backend_local.selection import PathFilter
from vally_backend_local.snapshots import Snapshotter

INLINE_BYTES = 262_144
PATCH_NAME = "workspace.patch"


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


class TrialCapture:
    """Completes the trajectory of a trial; its own copy, because executors may hand out one object twice."""

    def __init__(
        self,
        place: Place,
        options: TrialOptions,
        agent: AgentPart,
        found: Trajectory,
        limiter: anyio.CapacityLimiter,
    ) -> None:
        self._place = place
        self._options = options
        self._agent = agent
        self._limiter = limiter
        self._patch = place.directories.trial / PATCH_NAME
        self._artifacts = place.item.stimulus.artifacts
        self._warnings = list(agent.warnings)
        self.trajectory = _completed(found, place, agent.skill_names)
        self.trajectory.diff_error = agent.diff_error

    async def run(self) -> list[str]:
        """Capture diffs, patch and artifacts; returns warnings and never raises."""
        if self._agent.snapshotter is not None or self._artifacts.include:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._capture, limiter=self._limiter)
        return self._warnings

    async def move_large_diffs(self) -> list[str]:
        """Put diffs that are too large for a record beside it, after the graders saw them; returns warnings."""
        sidecars, trajectory = self._sidecars(), self.trajectory
        if sidecars is None or (not trajectory.diff and not trajectory.turn_diffs):
            return []
        try:
            await anyio.to_thread.run_sync(sidecars.move_large_diffs, trajectory, limiter=self._limiter)
        except OSError as error:
            return [f"diffs were not written: {error.strerror or error}"]
        return []

    def _capture(self) -> None:
        for part, what in ((self._capture_diff, "the diff"), (self._keep_artifacts, "artifacts")):
            try:
                part()
            except Exception as error:
                self._warnings.append(f"capturing {what} failed: {type(error).__name__}: {error}")

    def _capture_diff(self) -> None:
        snapshotter, sidecars = self._agent.snapshotter, self._sidecars()
        if snapshotter is None:
            return
        capture_diff(snapshotter, self.trajectory, self._patch, self._agent.needs)
        self._warnings += snapshotter.warnings()
        if sidecars is not None:
            sidecars.write_patch(self._patch)

    def _keep_artifacts(self) -> None:
        output_dir = self._options.output_dir
        if output_dir is None or not self._artifacts.include:
            return
        target = output_dir / "artifacts"
        self._warnings += keep_artifacts(self._artifacts, self._place.directories.workspace, target)
        if target.is_dir():
            self.trajectory.artifact_dir = str(target)

    def _sidecars(self) -> Sidecars | None:
        options = self._options
        if options.output_dir is None or options.run_dir is None:
            return None
        return Sidecars(options.output_dir, options.run_dir, options.redactor)


def _completed(found: Trajectory, place: Place, skill_names: Sequence[str]) -> Trajectory:
    """A copy of the trajectory with everything that the executor need not know."""
    assets = place.directories.assets
    return found.model_copy(
        update={
            "id": found.id or place.trial_id,
            "stimulus": found.stimulus or dict(place.item.stimulus.document),
            "work_dir": str(place.directories.workspace),
            "assets_dir": str(assets) if place.assets is not None else None,
            "metadata": {"skillsLoaded": sorted(skill_names), **found.metadata},
        }
    )


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
