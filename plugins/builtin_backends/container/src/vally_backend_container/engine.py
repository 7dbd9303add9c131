"""The container engine by its command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio

from vally import BackendError

UNAVAILABLE = "container-unavailable"
CALL_SECONDS = 60.0
NOTICE_SECONDS = 3.0
"""After which it is told that an engine lets one wait."""
MAX_SAID = 1000
_CLIENT_VARIABLES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "REGISTRY_AUTH_FILE",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "SystemRoot",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "ProgramFiles",
        "ProgramData",
        "COMSPEC",
        "PATHEXT",
    }
)
_CLIENT_PREFIXES = ("LC_", "DOCKER_", "CONTAINER_", "CONTAINERS_", "BUILDAH_", "BUILDKIT_", "STORAGE_", "NETAVARK_")
_COMPLAINTS = ("Error", "error", "docker:")
INSTALL = {"podman": "install the package 'podman'", "docker": "install Docker and start its daemon"}


class EngineError(Exception):
    """The engine said no; `returncode` is None when it did not answer in time or could not be started."""

    def __init__(self, message: str, returncode: int | None = None) -> None:
        super().__init__(message)
        self.returncode = returncode


@dataclass(frozen=True)
class Engine:
    """An engine that answers. `env` is all that its client gets of the environment.

    `rootless` says that the engine runs as the user and maps root inside to that user, `remote` that it may run on
    another machine, or a virtual one.
    """

    name: str
    program: str
    env: Mapping[str, str]
    version: str = ""
    rootless: bool = False
    options: tuple[str, ...] = field(default=())
    remote: bool = False

    @property
    def maps_users(self) -> bool:
        """Whether the caller can be any user inside."""
        return self.rootless and self.name == "podman"

    def command(self, *words: str) -> list[str]:
        """The command line of a call."""
        return [self.program, *self.options, *words]

    async def call(self, *words: str, seconds: float = CALL_SECONDS) -> str:
        """Return what a call wrote to its output. Raises EngineError."""
        return (await self.call_with_notices(*words, seconds=seconds))[0]

    async def call_with_notices(self, *words: str, seconds: float = CALL_SECONDS) -> tuple[str, str]:
        """Return what a call wrote to its output, and what it said besides. Raises EngineError."""
        try:
            with anyio.fail_after(seconds):
                done = await _finished(self.command(*words), self.env)
        except TimeoutError:
            raise EngineError(f"'{self.name} {words[0]}' did not end within {seconds:g} s") from None
        except OSError as error:
            raise EngineError(f"'{self.program}' cannot be started: {error.strerror or error}") from None
        if done.returncode != 0:
            raise EngineError(said(done.stderr) or f"exit code {done.returncode}", done.returncode)
        return done.stdout.decode("utf-8", errors="replace"), done.stderr.decode("utf-8", errors="replace")

    def removal(self, names: Sequence[str]) -> list[str]:
        """The words that end containers and remove them; podman would wait for them, and miss what is gone."""
        at_once = ["--time", "0", "--ignore"] if self.name == "podman" else []
        return ["rm", "--force", "--volumes", *at_once, *names]

    async def remove(self, names: Sequence[str]) -> None:
        """End containers and remove them. Raises EngineError."""
        await self.call(*self.removal(names))


async def _finished(command: Sequence[str], env: Mapping[str, str]) -> CompletedProcess[bytes]:
    """Run a client to its end, in a task of its own. Raises OSError.

    The end of a program cancels a task only once, and the clean-up of a process could wait for it ever after; what a
    group has cancelled stays so.
    """
    found: list[CompletedProcess[bytes] | OSError] = []

    async def run() -> None:
        try:
            found.append(await anyio.run_process(command, env=env, check=False, start_new_session=True, cwd=os.sep))
        except OSError as error:
            found.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def said(stderr: bytes) -> str:
    """What an engine complained about, in one line, without the notices that came before."""
    lines = [line.strip() for line in stderr.decode("utf-8", errors="replace").splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith(_COMPLAINTS)), 0)
    text = " ".join(" ".join(lines[first:]).split())
    return text if len(text) <= MAX_SAID else f"{text[: MAX_SAID - 1]}…"


def client_environment(process_env: Mapping[str, str]) -> dict[str, str]:
    """What clients of engines need of the environment: where the engine is, and how to reach registries."""
    return {
        name: value
        for name, value in process_env.items()
        if name in _CLIENT_VARIABLES or name.startswith(_CLIENT_PREFIXES) or name.lower().endswith("_proxy")
    }


async def find_engine(
    backend: str,
    process_env: Mapping[str, str],
    runtime: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Engine:
    """Return the engine of the backend `docker` or `podman`, or the first that answers. Raises BackendError.

    `say` hears of one that lets wait.
    """
    env, problems, loop = client_environment(process_env), {}, asyncio.get_running_loop()
    names = ("podman", "docker") if backend == "container" else (backend,)
    for name in names:
        program = shutil.which(name, path=process_env.get("PATH", os.defpath))
        if program is None:
            problems[name] = "was not found on PATH"
            continue
        notice = loop.call_later(NOTICE_SECONDS, say, f"still waiting for an answer of '{program}'")
        try:
            return await _answering(name, str(Path(program).absolute()), env, runtime)
        except EngineError as error:
            problems[name] = str(error)
        finally:
            notice.cancel()
    several = len(names) > 1
    told = [f"{name}: {problem}" for name, problem in problems.items()] if several else []
    what = f"neither {' nor '.join(names)} answers" if several else f"{backend} {_does_not_answer(problems[backend])}"
    advice = ", or ".join(INSTALL[name] for name in names)
    raise BackendError(
        what,
        code=UNAVAILABLE,
        where=f"--backend {backend}",
        hints=(*told, f"{advice}, or use --backend sandbox or local"),
    )


def _does_not_answer(problem: str) -> str:
    return problem if problem.startswith("was not found") else f"does not answer: {problem}"


async def _answering(name: str, program: str, env: Mapping[str, str], runtime: str | None) -> Engine:
    """Ask an engine for its version and how it runs; docker answers only when its daemon does."""
    # Podman takes the runtime before the command, and needs it for every call; docker for `run` alone.
    options = ("--runtime", runtime) if runtime is not None and name == "podman" else ()
    engine = Engine(name, program, env, options=options)
    version = _document(await engine.call("version", "--format", "json" if name == "podman" else "{{json .}}"))
    info = _document(await engine.call("info", "--format", "json" if name == "podman" else "{{json .}}"))
    part = version.get("Server") or version.get("Client") or {}
    remote = name == "docker" or bool(info.get("host", {}).get("serviceIsRemote"))
    return Engine(name, program, env, str(part.get("Version", "")), _is_rootless(name, info), options, remote)


def _is_rootless(name: str, info: Mapping[str, Any]) -> bool:
    if name == "podman":
        return bool(info.get("host", {}).get("security", {}).get("rootless"))
    return any("rootless" in str(option) for option in info.get("SecurityOptions") or ())


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise EngineError(f"it answered with something else than JSON: {text[:100]!r}") from None
    return found if isinstance(found, dict) else {}
