"""The backend of this machine: every trial in a workspace of its own, its processes as those of the user."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import anyio.to_thread

from vally import (
    BackendError,
    ErrorInfo,
    GradeOutcome,
    GradeRequest,
    GradingRequest,
    LocalProcessRunner,
    ProcessRunner,
    RunContext,
    TrialItem,
    TrialOptions,
    grade_entries,
)
from vally_backend_local.config import LocalArgs
from vally_backend_local.outcome import LocalOutcome
from vally_backend_local.preparing import Place, Runners
from vally_backend_local.runner import TrialRunner
from vally_backend_local.setup_commands import command_environment
from vally_backend_local.shared import RunResources, open_resources, temporary_directory
from vally_backend_local.trial import Trial

UNAVAILABLE = "backend-unavailable"


class GradeRunner(ProcessRunner, Protocol):
    """Who starts the processes of graders."""

    def close(self) -> None:
        """Say that nothing is left to watch over."""
        ...


class LocalBackend:
    """See `Backend`. Subclasses that confine processes bring their own `make_runners` and `make_shared_runner`."""

    def __init__(self) -> None:
        self._resources: RunResources | None = None
        self._shared_runner: ProcessRunner | None = None
        self._running = 0
        self._closed = False

    async def preflight(self, config: Any, context: RunContext) -> str:
        """Look whether there is a place for workspaces; there is nothing to tell of it. Raises BackendError."""
        temporary = temporary_directory(context.process_env)
        if not os.access(temporary, os.W_OK | os.X_OK):
            raise BackendError(f"the temporary directory '{temporary}' is not writable", code=UNAVAILABLE)
        return ""

    async def prepare(self, args: Mapping[str, str | list[str]] | LocalArgs, context: RunContext) -> None:
        """Make what trials share. Raises BackendError when no trial could start."""
        parsed = args if isinstance(args, LocalArgs) else LocalArgs.model_validate(dict(args))
        try:
            self._resources = await anyio.to_thread.run_sync(open_resources, parsed, context)
        except OSError as error:
            where = f" in '{error.filename}'" if error.filename else ""
            message = f"the temporary directory cannot be used: {error.strerror or error}{where}"
            raise BackendError(message, code=UNAVAILABLE) from error
        self._shared_runner = self.make_shared_runner(self._resources)

    def make_shared_runner(self, resources: RunResources) -> ProcessRunner | None:
        """Who starts agent processes that serve several trials; None when that is not allowed."""
        return LocalProcessRunner(
            f"run-{uuid.uuid4()}",
            resources.context.process_env,
            cwd=resources.scratch.directory,
            owned_dirs=(resources.scratch.directory,),
            removable_dirs=(resources.scratch.directory,),
            guardian=resources.guardian,
        )

    def make_runners(self, place: Place, env: dict[str, str]) -> Runners:
        """Who starts the processes of one trial; `env` is the environment of its agent."""
        assert self._resources is not None
        runner = TrialRunner(place.trial_id, env, place.directories, self._resources.guardian)
        return Runners(setup=runner, agent=runner, grade=runner)

    def make_grade_runner(self, request: GradeRequest, trial_id: str, env: dict[str, str]) -> GradeRunner:
        """Who starts the processes of graders when a recorded trajectory is graded, in the environment `env`."""
        return LocalProcessRunner(trial_id, env, cwd=request.work_dir, guardian=self._usable().guardian)

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> LocalOutcome:
        """Run and grade one item; raises BackendError only when the backend was not prepared or is shut down."""
        resources = self._usable()
        return await Trial(resources, self.make_runners, self._shared_runner, item, options).run()

    async def grade_trial(self, request: GradeRequest) -> GradeOutcome:
        """Grade a recorded trajectory with the workspace it names, as far as that still exists."""
        resources, item, options = self._usable(), request.item, request.options
        work_dir = request.work_dir
        if work_dir is not None and not work_dir.is_dir():
            info = ErrorInfo(message="workspace is not available", code="workspace-not-found", phase="grading")
            return GradeOutcome(grade=None, error=info)
        trial_id = str(uuid.uuid4())
        env = command_environment(
            options.process_env,
            item.stimulus.grading_environment.env,
            workspace=work_dir or resources.scratch.directory,
            trial_id=trial_id,
            assets=None,
            seed=item.seed,
        )
        runner = self.make_grade_runner(request, trial_id, env)
        trajectory = request.trajectory
        if work_dir is not None:
            trajectory = trajectory.model_copy(update={"work_dir": str(work_dir)})
        try:
            grade = await grade_entries(
                GradingRequest(
                    trajectory=trajectory,
                    stimulus=item.stimulus,
                    host=options.host,
                    runner=runner,
                    spec_dir=item.spec_dir,
                    scoring=item.scoring,
                    judge=options.judge,
                    env=env,
                    run_dir=request.run_dir,
                    diff_file=request.diff_file,
                    seed=item.seed,
                    on_warning=resources.context.on_warning,
                    owns_trajectory=True,
                )
            )
        finally:
            with anyio.CancelScope(shield=True):
                await runner.kill_all()
            runner.close()
        return GradeOutcome(grade=grade)

    async def shutdown(self) -> None:
        """End what is left of the run and remove what its trials shared; idempotent."""
        resources, self._resources = self._resources, None
        shared, self._shared_runner = self._shared_runner, None
        if resources is None:
            return
        if shared is not None:
            await shared.kill_all()
            close: Any = getattr(shared, "close", None)
            if close is not None:
                close()
        try:
            await anyio.to_thread.run_sync(resources.close)
        except OSError as error:
            resources.context.on_warning(f"the scratch directory of the run could not be removed: {error}")

    def _usable(self) -> RunResources:
        if self._resources is None:
            raise BackendError("the backend is not prepared or was shut down", code=UNAVAILABLE)
        return self._resources
