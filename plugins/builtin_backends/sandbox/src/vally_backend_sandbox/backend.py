"""The backend: trials as on `local`, with every process of set-up, agent and graders in a sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import (
    BackendError,
    GradeRequest,
    LocalProcessRunner,
    ProcessRunner,
    RunContext,
    TrialItem,
    TrialOptions,
)
from vally_backend_local import (
    LocalArgs,
    LocalBackend,
    LocalOutcome,
    ModelRelays,
    Place,
    Runners,
    RunResources,
    Trial,
    fresh_directory,
    keeps_home,
    model_relays,
    proxy_variables,
    remove_tree,
    withheld_variables,
)
from vally_backend_sandbox.config import Network, SandboxArgs
from vally_backend_sandbox.counting import ProcessGroups, counting_directory
from vally_backend_sandbox.launching import Limits
from vally_backend_sandbox.mounts import View
from vally_backend_sandbox.probing import OPTION, UNAVAILABLE, find_bwrap
from vally_backend_sandbox.runner import Confinement, SandboxRunner, WayOut
from vally_backend_sandbox.views import Views, is_apart


class SandboxBackend(LocalBackend):
    """See `Backend`."""

    def __init__(self) -> None:
        super().__init__()
        self._args = SandboxArgs()
        self._bwrap = ""
        self._views: Views | None = None
        self._groups: ProcessGroups | None = None

    async def preflight(self, config: SandboxArgs, context: RunContext) -> str:
        """Make a sandbox and nothing else. Raises BackendError."""
        bwrap = await anyio.to_thread.run_sync(find_bwrap, context.process_env)
        _process_groups(config)
        await super().preflight(config, context)
        return f"'{bwrap}' makes sandboxes"

    async def prepare(self, args: Mapping[str, str | list[str]] | LocalArgs, context: RunContext) -> None:
        """Prove that sandboxes can be made, then make what trials share. Raises BackendError."""
        parsed = args if isinstance(args, SandboxArgs) else SandboxArgs.model_validate(dict(args))
        self._bwrap = await anyio.to_thread.run_sync(find_bwrap, context.process_env)
        self._args = parsed
        self._groups = _process_groups(parsed)
        await super().prepare(parsed, context)
        resources = self._usable()
        hidden = [resources.temporary, resources.scratch.directory, context.cache_dir]
        self._views = Views(parsed, context.process_env, hidden)

    def make_shared_runner(self, resources: RunResources) -> ProcessRunner | None:
        """No process may serve several trials: it would see all of them."""
        return None

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> LocalOutcome:
        """Run and grade one item; raises BackendError only when the backend was not prepared or is shut down."""
        async with model_relays() as relays:
            make = partial(self._make_runners, options, relays)
            return await Trial(self._usable(), make, None, item, options).run()

    def _make_runners(self, options: TrialOptions, relays: ModelRelays, place: Place, env: dict[str, str]) -> Runners:
        """Raises BackendError when the trial cannot be confined as it should."""
        views, item, directories = self._usable_views(), place.item, place.directories
        directories.make_private()
        writable = [directories.workspace, directories.trial]
        parts = {"setup": views.setup, "agent": views.agent, "grade": views.graders}
        made = {name: make(directories.fresh_aside(), item, options, writable) for name, make in parts.items()}
        if keeps_home(options) and not made["agent"].sees(Path(env.get("HOME", "/"))):
            home = env.get("HOME")
            raise BackendError(
                f"'home: host' needs '{home}', which the sandbox hides; allow it with --backend-args ro={home}",
                code="unsupported-option",
            )
        limits = self._limits(place.trial_id)
        private = {"HOME": directories.home, "TMPDIR": directories.tmp}

        def runner(view: View, network: Network, way_out: WayOut | None = None, **facts: Any) -> SandboxRunner:
            return SandboxRunner(
                place.trial_id,
                env,
                Confinement(self._bwrap, view, network, limits, hidden_when_there=(directories.git,), **facts),
                way_out=way_out,
                cwd=directories.workspace,
                owned_dirs=directories.owned,
                removable_dirs=directories.at_death,
                guardian=self._usable().guardian,
                on_close=partial(self._forget, place.trial_id),
            )

        args = self._args
        withheld = withheld_variables(options.process_env, item.stimulus.grading_environment.env)
        proxies = {} if args.network == "host" else proxy_variables(options.process_env)
        way_out = WayOut(relays, fresh_directory(directories.run)) if args.network == "model" else None
        return Runners(
            setup=runner(made["setup"], args.setup_network, private=private),
            agent=runner(made["agent"], args.network, way_out, withheld=proxies),
            grade=runner(made["grade"], args.grade_network, private=private, withheld=withheld),
        )

    def make_grade_runner(self, request: GradeRequest, trial_id: str, env: dict[str, str]) -> LocalProcessRunner:
        """Who starts the processes of graders when a recorded trajectory is graded."""
        resources, item, options = self._usable(), request.item, request.options
        private, temporary = (fresh_directory(resources.scratch.directory) for _ in range(2))
        named = request.work_dir or Path(request.trajectory.work_dir)
        writable = [private, *([named] if is_apart(named, item) else [])]
        view = self._usable_views().graders(temporary, item, options, writable)

        def close() -> None:
            remove_tree(private)
            remove_tree(temporary)
            self._forget(trial_id)

        return SandboxRunner(
            trial_id,
            env,
            Confinement(
                self._bwrap,
                view,
                self._args.grade_network,
                self._limits(trial_id),
                private={"HOME": private, "TMPDIR": private},
                withheld=withheld_variables(options.process_env, item.stimulus.grading_environment.env),
            ),
            cwd=request.work_dir or resources.scratch.directory,
            removable_dirs=(resources.scratch.directory,),
            guardian=resources.guardian,
            on_close=close,
        )

    async def shutdown(self) -> None:
        """End what is left of the run and remove what its trials shared; idempotent."""
        resources, groups, self._groups = self._resources, self._groups, None
        await super().shutdown()
        if groups is not None and resources is not None:
            for left in await anyio.to_thread.run_sync(groups.close):
                resources.context.on_warning(f"the control group '{left}' could not be removed")

    def _usable_views(self) -> Views:
        self._usable()
        assert self._views is not None
        return self._views

    def _limits(self, trial_id: str) -> Limits:
        args = self._args
        if self._groups is None:
            return Limits(args.memory, args.pids)
        try:
            return Limits(args.memory, None, self._groups.make(trial_id))
        except OSError as error:
            raise BackendError(f"the limit 'pids' cannot be set: {error}", code=UNAVAILABLE) from error

    def _forget(self, trial_id: str) -> None:
        if self._groups is not None:
            self._groups.remove(trial_id)


def _process_groups(args: SandboxArgs) -> ProcessGroups | None:
    """Control groups when there is a limit that the user's own would not enforce. Raises BackendError."""
    if args.pids is None or os.geteuid() != 0:
        return None
    directory = counting_directory()
    if directory is None:
        raise BackendError(
            "'pids' does not bind root, and no control group with the controller 'pids' can be made",
            code=UNAVAILABLE,
            where=OPTION,
            hints=("run as an ordinary user, or leave 'pids' out",),
        )
    return ProcessGroups(directory, args.pids)
