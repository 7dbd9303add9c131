"""From a trial to the runners of its parts: what each container is made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vally import GradeRequest, LocalProcessRunner, TrialItem, TrialOptions
from vally_backend_container.config import ContainerArgs, Mount
from vally_backend_container.containers import Identity, Recipe
from vally_backend_container.engine import Engine
from vally_backend_container.mounts import Sights, checked_home, distinct
from vally_backend_container.runner import ContainerRunner, Part
from vally_backend_container.variables import Variables
from vally_backend_local import (
    ModelRelays,
    Place,
    Runners,
    RunResources,
    fresh_directory,
    keeps_home,
    project_places,
    proxy_variables,
    remove_tree,
    shows_any,
    withheld_variables,
)

PARTS = "parts"
"""Below the private directory of a trial: what its containers are started with, and hidden in each."""


@dataclass(frozen=True, kw_only=True)
class _Scene:
    """What the parts of a trial have in common.

    `aside` is a directory for what processes see under another name, and for what passes between launchers and this
    program; it counts as the trial's. `private` are variables for processes that have none of their own; `owned` what
    the user of the image may write.
    """

    trial_id: str
    env: Mapping[str, str]
    cwd: Path
    aside: Path
    private: Mapping[str, str]
    owned: tuple[Path, ...]
    owned_dirs: tuple[Path, ...] = ()
    removable_dirs: tuple[Path, ...] = ()
    on_close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class _Wanted:
    """What one part has for itself; `dropped` are variables, with their values, that its processes do not get."""

    part: Part
    network: str
    mounts: Iterable[Mount]
    dropped: Mapping[str, str]
    hidden: tuple[Path, ...] = ()
    eager: bool = False
    relays: ModelRelays | None = None


@dataclass(frozen=True, kw_only=True)
class RunnerMaker:
    """Makes the runners of a run's trials; `labels` are those of all its containers."""

    engine: Engine
    args: ContainerArgs
    identities: Mapping[Part, Identity]
    labels: Mapping[str, str]
    sights: Sights
    resources: RunResources
    covers: Path

    def of_trial(self, options: TrialOptions, relays: ModelRelays, place: Place, env: dict[str, str]) -> Runners:
        """The runners of a trial. Raises BackendError when it cannot be confined as it should."""
        item, directories, args, sights = place.item, place.directories, self.args, self.sights
        directories.make_private()
        if keeps_home(options):
            checked_home(env.get("HOME"), sights)
        writable = (directories.workspace, directories.trial)
        # One part must not get at what another is started with: a link put there would be followed on this machine.
        parts = directories.trial / PARTS
        parts.mkdir(mode=0o700)
        scene = _Scene(
            trial_id=place.trial_id,
            env=env,
            cwd=directories.workspace,
            aside=directories.fresh_aside(),
            private={"HOME": str(directories.home), "TMPDIR": str(directories.tmp)},
            owned=writable,
            owned_dirs=directories.owned,
            removable_dirs=directories.at_death,
        )

        def common() -> list[Mount]:
            # Nothing passes from one part to the next by way of the system's temporary directories.
            return sights.common(item, options, writable, fresh_directory(scene.aside))

        here, hidden = _of_this_machine(options.process_env), (directories.git, parts)
        passed = getattr(options.executor_config, "pass_env", None) or ()
        proxies = {} if args.network == "host" else proxy_variables(options.process_env)
        dropped = {**{name: value for name, value in here.items() if name not in passed}, **proxies}
        seen, needed = [*common(), *sights.agent(item, options)], hasattr(options.executor, "host_paths")
        return Runners(
            setup=self._runner(scene, _Wanted("setup", args.setup_network, common(), here, hidden)),
            agent=self._runner(scene, _Wanted("agent", args.network, seen, dropped, hidden, needed, relays)),
            grade=self._runner(scene, self._graders(item, options, common(), hidden)),
        )

    def of_grading(self, request: GradeRequest, trial_id: str, env: dict[str, str]) -> ContainerRunner:
        """The runner of graders when a recorded trajectory is graded. Raises BackendError."""
        item, options = request.item, request.options
        private, temporary = (fresh_directory(self.resources.scratch.directory) for _ in range(2))
        project = [path.resolve() for path in project_places(item)]
        named = request.work_dir or Path(request.trajectory.work_dir)
        recorded = [named.resolve()] if named.is_absolute() and named.is_dir() else []
        # One in which the project lies is not for graders to change.
        workspace = [path for path in recorded if not shows_any(path, project)]

        def close() -> None:
            remove_tree(private)
            remove_tree(temporary)

        scene = _Scene(
            trial_id=trial_id,
            env=env,
            cwd=request.work_dir or private,
            aside=temporary,
            private={"HOME": str(private), "TMPDIR": str(private)},
            owned=(private, *workspace),
            removable_dirs=(self.resources.scratch.directory,),
            on_close=close,
        )
        common = self.sights.common(item, options, scene.owned, temporary)
        return self._runner(scene, self._graders(item, options, [*(Mount(path, path) for path in recorded), *common]))

    def _graders(
        self, item: TrialItem, options: TrialOptions, common: Iterable[Mount], hidden: tuple[Path, ...] = ()
    ) -> _Wanted:
        """Graders see the project, and get of the environment what an agent would get."""
        project, closed = self.sights.graders(item, options)
        withheld = withheld_variables(options.process_env, item.stimulus.grading_environment.env)
        dropped = {**_of_this_machine(options.process_env), **withheld}
        return _Wanted("grade", self.args.grade_network, [*project, *common], dropped, (*hidden, *closed))

    def _runner(self, scene: _Scene, wanted: _Wanted) -> ContainerRunner:
        control = fresh_directory(scene.aside)
        # Launchers of another user write there; nobody else on this machine gets past the directories above.
        control.chmod(0o777)
        # Not to be left out although it lies in a directory that is mounted: what is around it is hidden.
        mounts = (*distinct(wanted.mounts), Mount(control, control, read_only=False))
        identity = self.identities[wanted.part]
        recipe = Recipe(
            engine=self.engine,
            args=self.args,
            identity=identity,
            network=wanted.network,
            labels={**self.labels, "vally.trial": scene.trial_id},
            mounts=mounts,
            hidden=wanted.hidden,
            covers=self.covers,
        )
        variables = Variables(
            trial_id=scene.trial_id,
            dropped=wanted.dropped,
            private=scene.private,
            image_path=identity.path,
            search=tuple(mount.target for mount in mounts),
        )
        inner = LocalProcessRunner(
            scene.trial_id,
            scene.env,
            owned_dirs=scene.owned_dirs,
            removable_dirs=scene.removable_dirs,
            guardian=self.resources.guardian,
        )
        return ContainerRunner(
            wanted.part,
            recipe,
            inner,
            variables,
            scene.env,
            cwd=scene.cwd,
            control=control,
            owned=scene.owned,
            aside=scene.aside,
            eager=wanted.eager,
            relays=wanted.relays if wanted.network == "model" else None,
            on_close=scene.on_close,
        )


def _of_this_machine(process_env: Mapping[str, str]) -> dict[str, str]:
    """Variables that name paths of this machine; an image has its own, if any."""
    return {name: value for name, value in process_env.items() if value.startswith(os.sep) and name != "PATH"}
