"""The first half of a trial: everything until the agent has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from vally import (
    ExecutorError,
    ExecutorOptions,
    ProcessRunner,
    StopSignal,
    Trajectory,
    TrialOptions,
    TrialSkipped,
    TurnComplete,
    run_agent,
)
from vally_backend_local.disk import watched_disk
from vally_backend_local.ending import CANCELLED
from vally_backend_local.git_process import SnapshotError
from vally_backend_local.in_place import diff_obstacle
from vally_backend_local.preparing import (
    Place,
    Runners,
    executor_options,
    refuse_in_place_repository,
    run_setup,
    stage,
)
from vally_backend_local.shared import RunResources
from vally_backend_local.snapshots import Snapshotter
from vally_backend_local.work import call_plugin

T = TypeVar("T")


class AgentPart:
    """Prepares the workspace of a trial and runs its executor in it.

    Afterwards `snapshotter` can tell what changed; it is None when nobody wants to know, or when `diff_error` says why
    that cannot be told. `executor_knows` says that the executor has to clean up.
    """

    def __init__(
        self,
        place: Place,
        options: TrialOptions,
        resources: RunResources,
        runners: Runners,
        environments: tuple[dict[str, str], dict[str, str]],
        shared_runner: ProcessRunner | None,
    ) -> None:
        self._place = place
        self._options = options
        self._resources = resources
        self._runners = runners
        self._environments = environments
        self._shared_runner = shared_runner
        self._stop = StopSignal()
        self._disk_full = False
        self._executor_options: ExecutorOptions | None = None
        self.needs = resources.needs(options.host, place.item.stimulus)
        self.snapshotter: Snapshotter | None = None
        self.diff_error: str | None = None
        self.executor_knows = False
        self.warnings: list[str] = []

    @property
    def skill_names(self) -> list[str]:
        """Names of the skills offered to the agent."""
        return [skill.name for skill in self._executor_options.skills] if self._executor_options else []

    @property
    def blocking(self) -> bool:
        """Whether sync methods of the executor may block."""
        record = self._options.executor_record
        return True if record is None else record.blocking

    async def prepare(self) -> None:
        """Stage the environment and take the baseline. Raises SetupError and what the executor raises."""
        place, resources = self._place, self._resources
        refuse_in_place_repository(place)
        if self.needs.diff and place.item.workspace.in_place:
            self.diff_error = await self._in_thread(
                diff_obstacle, place.directories.workspace, self._options.process_env, resources.scratch.directory
            )
        filled = await stage(place, resources)
        self.warnings += filled.warnings
        await run_setup(place, self._options, self._runners.setup)
        await self._runners.end_setup()
        env, base_env = self._environments
        self._executor_options = executor_options(
            place,
            self._options,
            skills=resources.skills.staged(place.item.skills, place.directories.workspace),
            env=env,
            base_env=base_env,
            runner=self._runners.agent,
            shared_runner=self._shared_runner,
            shared_dir=resources.scratch.directory,
            stop=self._stop,
            on_turn_complete=self._turn_completed,
            warn=self.warnings.append,
        )
        if self.needs.diff and self.diff_error is None:
            await self._take_baseline(None if place.environment.commands else filled.key)
        await self._prepare_executor(self._executor_options)
        await self._runners.open_agent()

    async def _take_baseline(self, key: str | None) -> None:
        directories = self._place.directories
        self.snapshotter = Snapshotter(directories.workspace, directories.git, cache=self._resources.baselines)
        # The snapshotter tells the reason of a failure when it is asked for the diff.
        with suppress(SnapshotError):
            await self._in_thread(self.snapshotter.baseline, key)

    async def _prepare_executor(self, options: ExecutorOptions) -> None:
        """Let the executor write its configuration, which then belongs to the baseline."""
        method = getattr(self._options.executor, "prepare", None)
        if method is None:
            return
        self.executor_knows = True
        await call_plugin(method, self._place.item.stimulus, options, blocking=self.blocking)
        if self.snapshotter is not None:
            # A second look costs little; what was staged comes from the cache of baselines.
            with suppress(SnapshotError):
                await self._in_thread(self.snapshotter.rebase)

    async def run(self) -> Trajectory:
        """Run the executor and end all processes. Raises ExecutorError and TrialSkipped."""
        assert self._executor_options is not None
        self.executor_knows = True
        seconds = self._place.item.timeout_ms / 1000
        options = replace(self._executor_options, deadline=time.monotonic() + seconds)
        try:
            return await self._execute(options)
        except ExecutorError as error:
            await self._runners.kill_all()
            raise _with_remarks(error, self._runners.remarks()) from error
        finally:
            await self._runners.kill_all()
            self.warnings += self._runners.remarks()

    async def _execute(self, options: ExecutorOptions) -> Trajectory:
        async def call() -> Trajectory:
            return await run_agent(
                self._options.executor,
                self._place.item.stimulus,
                options,
                blocking=self.blocking,
                shutdown_timeout_s=self._options.shutdown_timeout_s,
            )

        try:
            with self._options.stop.heard_by(self._stop.set):
                async with watched_disk(self._roots(), self._resources.args.disk_limit, self._fill_disk):
                    trajectory = await call()
        except (ExecutorError, TrialSkipped) as error:
            if self._disk_full:
                raise self._disk_limit(error.trajectory) from error
            raise
        if self._disk_full:
            raise self._disk_limit(trajectory)
        return trajectory

    def _roots(self) -> tuple[Path, ...]:
        directories = self._place.directories
        in_place = self._place.item.workspace.in_place
        private = (directories.trial, directories.aside)
        return private if in_place else (directories.workspace, *private)

    def _fill_disk(self) -> None:
        self._disk_full = True
        self._stop.set(CANCELLED)

    def _disk_limit(self, trajectory: Trajectory | None) -> ExecutorError:
        limit = self._resources.args.disk_limit / 2**20
        message = f"workspace and private directory of the trial hold more than the disk limit of {limit:g} MiB"
        return ExecutorError(message, code="disk-limit", trajectory=trajectory)

    async def _turn_completed(self, done: TurnComplete) -> None:
        if self.snapshotter is None or not self.needs.turn_diffs:
            return
        # An agent that is ended meanwhile must not leave half a snapshot.
        with anyio.CancelScope(shield=True):
            await self._in_thread(self.snapshotter.turn, done.turn)

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(function, *args, limiter=self._resources.capturing)


def _with_remarks(error: ExecutorError, remarks: Sequence[str]) -> ExecutorError:
    """The same error; what ended the agent may stand in the remarks alone."""
    if not remarks:
        return error
    return ExecutorError(
        "; ".join([error.message, *remarks]),
        code=error.code or "executor-exception",
        retryable=error.retryable,
        retry_after_ms=error.retry_after_ms,
        details=error.details,
        trajectory=error.trajectory,
    )
