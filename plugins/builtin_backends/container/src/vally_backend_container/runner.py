"""Starting the processes of a trial, or of a grading, in a container."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from vally import (
    AgentNetwork,
    BackendError,
    Completed,
    ExecutorError,
    LocalProcessRunner,
    ProcessStartError,
    ProviderConfig,
    communicate,
)
from vally_backend_container.config import agent_network
from vally_backend_container.containers import Container, Recipe
from vally_backend_container.engine import UNAVAILABLE, EngineError
from vally_backend_container.launching import PREFIX, launched, prefixed
from vally_backend_container.ownership import change_owner, foreign_in
from vally_backend_container.processes import GRACE_SECONDS, ContainerProcess
from vally_backend_container.variables import Variables
from vally_backend_local import GRADER_INPUT, Forward, ModelRelays, forwarder_command, remove_tree

MAX_BYTES = 10 * 2**20
FORWARDER_SECONDS = 30.0
Part = Literal["setup", "agent", "grade"]


class ContainerRunner:
    """Runs the processes of one part of a trial in one container, which is made when the first of them is.

    See `ProcessRunner`. `inner` starts the engine's clients on this machine; `control` is a directory in
    which launchers write what they have to tell. `owned` are directories for the user of the image; with what is left
    in `aside` they go back to the caller afterwards.
    """

    def __init__(
        self,
        part: Part,
        recipe: Recipe,
        inner: LocalProcessRunner,
        variables: Variables,
        env: Mapping[str, str],
        *,
        cwd: Path,
        control: Path,
        aside: Path,
        owned: tuple[Path, ...] = (),
        eager: bool = False,
        relays: ModelRelays | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.network: AgentNetwork = agent_network(recipe.network)
        self._part: Part = part
        self._recipe = recipe
        self._inner = inner
        self._variables = variables
        self._env = dict(env)
        self._cwd = cwd
        self._control = control
        self._owned = owned
        self._aside = aside
        self._eager = eager
        self._relays = relays
        self._on_close = on_close
        self._forwarded: set[Forward] = set()
        self._container: Container | None = None
        self._lock = anyio.Lock()
        self._remarks: list[str] = []

    @property
    def used(self) -> bool:
        """Whether there is a container, or was one."""
        return self._inner.used

    def remarks(self) -> list[str]:
        """Which limits the processes ran into; each is told once."""
        told, self._remarks = self._remarks, []
        return told

    async def open(self) -> None:
        """Start the container when an agent is sure to need it. Raises what a start raises."""
        if self._eager:
            await self._ready()

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return command and environment for a library that starts the process itself. Raises `ProcessStartError`."""
        self._check_directory(argv[0], cwd)
        if self._container is None:
            container = Container(self._recipe, self._inner, self._part)
            try:
                container.start_now()
            except EngineError as error:
                raise ProcessStartError("EIO", self._problem(error)) from None
            self._container = container
        command, variables = self._entering(self._container, argv, cwd, env, self._report())
        return self._inner.wrap(command, cwd=Path(os.sep), env=variables)

    def mark(self, name: str, value: str) -> None:
        """Know clients whose environment holds `name=value` as those of this trial."""
        self._inner.mark(name, value)

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig:
        """The provider as it is, or behind a loopback port of the container. Raises `ExecutorError`."""
        if self._relays is None:
            return await self._inner.reach_provider(provider, warn)
        if self._recipe.identity.forwarder is None:
            raise ExecutorError(
                f"image '{self._recipe.identity.name}' has none of python3, node and socat, one of which leads the "
                "agent to its model; add one, or give the agent a network with --backend-args network=bridge",
                code="unsupported-option",
            )
        told = await self._relays.reach(provider, self._control, warn)
        await self._forward(await self._ready())
        return told

    async def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> ContainerProcess:
        """Start a process with three pipes; `env` replaces the default environment.

        Raises `ProcessStartError`, and what the start of a container raises; what goes wrong with the engine is a
        `BackendError` where no agent is concerned.
        """
        place, report = cwd or self._cwd, self._report()
        self._check_directory(argv[0], place)
        container = await self._ready()
        command, variables = self._entering(container, argv, place, self._env if env is None else env, report)
        with anyio.CancelScope(shield=True):
            client = await self._inner.start(command, cwd=Path(os.sep), env=variables)
        exact = self._recipe.identity.perl is not None
        process = ContainerProcess(client, container, report, exact=exact, give_up=self._remove)
        try:
            await process.started(argv[0], self._recipe.args.startup_timeout)
        except EngineError as error:
            await process.kill()
            if self._part == "agent":
                raise ProcessStartError("EIO", str(error)) from None
            raise BackendError(str(error), code=UNAVAILABLE) from None
        except BaseException:
            await process.kill()
            raise
        return process

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Completed:
        """Run a process to its end and return what it wrote; see `LocalProcessRunner.run`."""
        process = await self.start(argv, cwd=cwd, env=env)
        until = None if timeout is None else partial(anyio.sleep, timeout)
        try:
            return await communicate(process, stdin=stdin, max_bytes=max_bytes, until=until)
        finally:
            if process.returncode is None:
                await process.terminate()

    async def kill_all(self, grace: float = GRACE_SECONDS) -> int:
        """End the container with all that is in it, then the clients; returns how many of these there were."""
        if not self.used:
            return 0
        container = self._container
        with anyio.CancelScope(shield=True):
            if container is not None:
                self._remarks += (await container.limits_hit()).remarks(self._recipe.args)
                await self._remove()
        found = await self._inner.kill_all(grace)
        if self._relays is not None:
            self._relays.close()
        return found

    def close(self) -> None:
        """Say that nothing is left of the trial."""
        self._inner.close()
        remove_tree(self._control)
        self._on_close()

    async def _ready(self) -> Container:
        async with self._lock:
            if self._container is None:
                self._container = await self._started()
        return self._container

    async def _started(self) -> Container:
        container = Container(self._recipe, self._inner, self._part)
        try:
            await self._hand_over()
            await container.start()
        except EngineError as error:
            await self._discard(container)
            raise self._failure(error) from None
        except BaseException:
            await self._discard(container)
            raise
        self._forwarded.clear()
        await self._forward(container)
        return container

    async def _forward(self, container: Container) -> None:
        """Lead ports inside to the sockets of relays that were opened since."""
        forwarder = self._recipe.identity.forwarder
        missing = [item for item in (self._relays.forwards if self._relays else ()) if item not in self._forwarded]
        if not missing or forwarder is None:
            return
        self._forwarded.update(missing)
        kind, program = forwarder
        command = container.enter(forwarder_command(kind, program, missing), Path(os.sep), ())
        client = await self._inner.start(command, cwd=Path(os.sep), env=self._recipe.engine.env)
        # Socat says nothing when it listens, and agents ask again when nobody does yet.
        if kind != "socat":
            with anyio.move_on_after(FORWARDER_SECONDS):
                await client.stdout.receive()

    async def _remove(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            await self._discard(container)
            await self._take_back()

    async def _discard(self, container: Container) -> None:
        try:
            await container.remove()
        except EngineError as error:
            self._remarks.append(f"container '{container.name}' could not be removed: {error}")

    async def _hand_over(self) -> None:
        """Let the user of the image write where the caller alone could."""
        identity = self._recipe.identity
        if identity.foreign:
            await change_owner(self._recipe, self._owned, f"{identity.uid}:{identity.gid}")

    async def _take_back(self) -> None:
        identity = self._recipe.identity
        if not identity.foreign:
            return
        try:
            left = await anyio.to_thread.run_sync(foreign_in, (*self._owned, self._aside))
            await change_owner(self._recipe, left, identity.caller)
        except (EngineError, OSError) as error:
            self._remarks.append(f"files of the user {identity.uid} could not be given back: {error}")

    def _entering(
        self, container: Container, argv: Sequence[str], cwd: Path, env: Mapping[str, str], report: Path
    ) -> tuple[list[str], dict[str, str]]:
        """The client's command and its environment for a process inside."""
        inside = self._variables.inside(env)
        self._show_grader_input(inside)
        travelling = prefixed(inside)
        names = [name for name in inside if PREFIX + name in travelling]
        perl = self._recipe.identity.perl
        command = launched([os.fspath(word) for word in argv], report, names, perl)
        variables = {**self._recipe.engine.env, **travelling, "PERL_BADLANG": "0"}
        given = [*travelling, *(["PERL_BADLANG"] if perl else [])]
        return container.enter(command, cwd, given), variables

    def _show_grader_input(self, inside: dict[str, str]) -> None:
        """Copy what a grader may know to where its container sees it; the file appeared after the container."""
        named = inside.get(GRADER_INPUT)
        if named is not None:
            copy = self._control / f"{secrets.token_hex(8)}.json"
            shutil.copyfile(named, copy)
            copy.chmod(0o644)
            inside[GRADER_INPUT] = str(copy)

    def _report(self) -> Path:
        return self._control / secrets.token_hex(8)

    def _check_directory(self, program: str, directory: Path) -> None:
        """Say of a missing directory what would be said without a container."""
        if not directory.is_dir():
            number = errno.ENOTDIR if directory.exists() else errno.ENOENT
            raise ProcessStartError.from_error(OSError(number, os.strerror(number), str(directory)), program)

    def _problem(self, error: EngineError) -> str:
        return f"{self._recipe.engine.name} cannot start a container of image '{self._recipe.identity.name}': {error}"

    def _failure(self, error: EngineError) -> ExecutorError | BackendError:
        if self._part == "agent":
            return ExecutorError(self._problem(error), code="agent-start-failed", retryable=True)
        return BackendError(self._problem(error), code=UNAVAILABLE)
