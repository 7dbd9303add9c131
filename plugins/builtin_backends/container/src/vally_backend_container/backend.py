"""The backends: trials as on `local`, with set-up, agent and graders each in a container of its own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import anyio

from vally import BackendError, GradeRequest, ProcessRunner, RunContext, TrialItem, TrialOptions
from vally_backend_container.config import ContainerArgs
from vally_backend_container.engine import UNAVAILABLE, Engine, EngineError, find_engine
from vally_backend_container.images import Image, Images
from vally_backend_container.making import RunnerMaker
from vally_backend_container.mounts import Sights
from vally_backend_container.probing import Prober
from vally_backend_container.runner import ContainerRunner
from vally_backend_local import (
    LocalArgs,
    LocalBackend,
    LocalOutcome,
    RunResources,
    Trial,
    fresh_directory,
    model_relays,
)


class ContainerBackend(LocalBackend):
    """See `Backend`. `name` is `container`, `docker` or `podman`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._maker: RunnerMaker | None = None

    async def preflight(self, config: ContainerArgs, context: RunContext) -> str:
        """Start a container as trials do, without fetching or building an image. Raises BackendError."""
        engine = await find_engine(self._name, context.process_env, config.runtime, context.on_warning)
        labels = {"vally.process": secrets.token_hex(8)}
        prober = Prober(engine, config, labels, context.on_warning)
        await prober.check_networks()
        seen = await Images(engine, config, context.project_root, context.on_warning).outlook()
        told = [f"{engine.name} {engine.version}" + (", rootless" if engine.rootless else "")]
        try:
            told += [await _started(prober, engine, item) for item in seen]
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(EngineError):
                await _remove_left(engine, labels)
            raise
        return "; ".join(told)

    async def prepare(self, args: Mapping[str, str | list[str]] | LocalArgs, context: RunContext) -> None:
        """Find the engine, get the images, prove that containers start, then make what trials share.

        Raises BackendError.
        """
        parsed = args if isinstance(args, ContainerArgs) else ContainerArgs.model_validate(dict(args))
        engine = await find_engine(self._name, context.process_env, parsed.runtime, context.on_warning)
        labels = {"vally.run": context.run_id, "vally.process": secrets.token_hex(8)}
        prober = Prober(engine, parsed, labels, context.on_warning)
        await prober.check_networks()
        images = Images(engine, parsed, context.project_root, context.on_warning)
        task = await images.task()
        grade = task if parsed.grade_image is None else await images.named(parsed.grade_image)
        agents = await prober.identify(task)
        graders = agents if grade == task else await prober.identify(grade)
        await super().prepare(parsed, context)
        resources = self._usable()
        self._maker = RunnerMaker(
            engine=engine,
            args=parsed,
            identities={"setup": agents, "agent": agents, "grade": graders},
            labels=labels,
            sights=Sights(
                parsed, context.process_env, [resources.temporary, resources.scratch.directory, context.cache_dir]
            ),
            resources=resources,
            covers=fresh_directory(resources.scratch.directory),
        )

    @property
    def facts(self) -> Mapping[str, str]:
        """The engine and the images by content, for the manifest of the run; empty before `prepare`."""
        maker = self._maker
        if maker is None:
            return {}
        task, grade = maker.identities["agent"], maker.identities["grade"]
        return {
            "engine": f"{maker.engine.name} {maker.engine.version}",
            "image": task.name,
            "imageDigest": task.image,
            **({} if grade is task else {"gradeImage": grade.name, "gradeImageDigest": grade.image}),
        }

    def make_shared_runner(self, resources: RunResources) -> ProcessRunner | None:
        """No process may serve several trials: it would see all of them."""
        return None

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> LocalOutcome:
        """Run and grade one item; raises BackendError only when the backend was not prepared or is shut down."""
        resources = self._usable()
        async with model_relays() as relays:
            make = partial(self._ready().of_trial, options, relays)
            return await Trial(resources, make, None, item, options).run()

    def make_grade_runner(self, request: GradeRequest, trial_id: str, env: dict[str, str]) -> ContainerRunner:
        """Who starts the processes of graders when a recorded trajectory is graded."""
        return self._ready().of_grading(request, trial_id, env)

    async def shutdown(self) -> None:
        """End what is left of the run and remove what its trials shared; idempotent."""
        maker, self._maker = self._maker, None
        if maker is not None:
            try:
                await _remove_left(maker.engine, maker.labels)
            except EngineError as error:
                maker.resources.context.on_warning(f"containers of the run may be left: {error}")
        await super().shutdown()

    def _ready(self) -> RunnerMaker:
        if self._maker is None:
            raise BackendError("the backend is not prepared or was shut down", code=UNAVAILABLE)
        return self._maker


async def _started(prober: Prober, engine: Engine, seen: Image | str) -> str:
    """Start a container of an image, or an empty one where there is no image yet; tell what is known then."""
    if isinstance(seen, Image):
        await prober.identify(seen)
        return f"a container of image '{seen.name}' starts"
    if engine.remote:
        return f"{seen}, and whether containers start shows then"
    await prober.start_empty()
    return f"containers start; {seen}"


async def _remove_left(engine: Engine, labels: Mapping[str, str]) -> None:
    filters = [part for key, value in labels.items() for part in ("--filter", f"label={key}={value}")]
    left = (await engine.call("ps", "--all", "--quiet", *filters)).split()
    if left:
        await engine.remove(left)


def container() -> ContainerBackend:
    """The backend that takes the engine that answers first."""
    return ContainerBackend("container")


def docker() -> ContainerBackend:
    """The backend of docker."""
    return ContainerBackend("docker")


def podman() -> ContainerBackend:
    """The backend of podman."""
    return ContainerBackend("podman")
