"""Proving that containers of an image can be made, and learning who and what is in them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vally import BackendError, did_you_mean
from vally_backend_container.config import ContainerArgs
from vally_backend_container.containers import Identity, confined, labelled
from vally_backend_container.engine import UNAVAILABLE, Engine, EngineError
from vally_backend_container.images import Image
from vally_backend_local import ForwarderKind

_FORWARDERS: dict[ForwarderKind, str] = {"python": "python3", "node": "node", "socat": "socat"}
"""Programs that lead an agent to its model, as images call them."""
_TOLD = (
    "$(id -u)",
    "$(id -g)",
    "$PATH",
    "$(command -v perl)",
    *(f"$(command -v {name})" for name in _FORWARDERS.values()),
)
PROBE = "printf '%s\\n' " + " ".join(f'"{word}"' for word in _TOLD)
_WITHOUT_SYSTEMD = re.compile(r"rlimit|cgroup|systemd|dbus|sd-bus|journal", re.IGNORECASE)
PODMAN_SETTINGS = (
    "without systemd, as in many CI jobs, podman needs settings of its own, which CONTAINERS_CONF may name: "
    "see 'Engines' in docs/guide/containers.md"
)
NOT_FOUND = 127
"""Exit code of an engine whose container started and has no such program."""
_MODES = ("none", "model", "bridge", "host", "default", "private", "slirp4netns", "pasta")
"""What `network` may be beside the name of a network."""
_BROKEN_PROMISE = re.compile(r"ignored|not support|discarded", re.IGNORECASE)


@dataclass(frozen=True)
class _Seen:
    uid: int
    gid: int
    path: str
    perl: str | None
    forwarder: tuple[ForwarderKind, str] | None

    @classmethod
    def of(cls, lines: list[str]) -> _Seen | None:
        """What the probe told; None when it could not tell."""
        if len(lines) != len(_TOLD) or not (lines[0].isdecimal() and lines[1].isdecimal()):
            return None
        uid, gid, path, perl, *programs = lines
        found = [(kind, program) for kind, program in zip(_FORWARDERS, programs, strict=True) if program]
        return cls(int(uid), int(gid), path, perl or None, found[0] if found else None)


class Prober:
    """Starts containers as trials will; `say` hears of limits that the engine cannot enforce."""

    def __init__(
        self, engine: Engine, args: ContainerArgs, labels: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._args = args
        self._labels = labels
        self._say = say

    async def check_networks(self) -> None:
        """Raise BackendError for a network that the engine does not have."""
        args, engine = self._args, self._engine
        for name in dict.fromkeys((args.network, args.setup_network, args.grade_network)):
            if name in _MODES:
                continue
            try:
                await engine.call("network", "inspect", name)
            except EngineError as error:
                if error.returncode is None:
                    raise BackendError(str(error), code=UNAVAILABLE) from None
                hint = await self._near_networks(name)
                raise BackendError(f"{engine.name} has no network '{name}'", code=UNAVAILABLE, hints=(hint,)) from None

    async def _near_networks(self, name: str) -> str:
        try:
            known = (await self._engine.call("network", "ls", "--format", "{{.Name}}")).split()
        except EngineError as error:
            return str(error)
        return did_you_mean(name, known) or f"networks: {', '.join(known) or 'none'}"

    async def identify(self, image: Image) -> Identity:
        """Who processes in containers of an image are. Raises BackendError."""
        engine, user = self._engine, self._args.user
        caller = _caller(engine)
        if user is None:
            words = ["--user", f"{caller[0]}:{caller[1]}"]
            if engine.maps_users:
                words = ["--user", f"{os.geteuid()}:{os.getegid()}", "--userns", "keep-id"]
            return _identity(image, await self._probe(image, words), words, caller)
        seen = await self._probe(image, ["--user", user])
        words = ["--user", f"{seen.uid}:{seen.gid}"]
        if engine.maps_users:
            # The caller becomes that user inside, so that files need not change hands.
            words += ["--userns", f"keep-id:uid={seen.uid},gid={seen.gid}"]
            return _identity(image, await self._probe(image, words), words, caller)
        return _identity(image, seen, words, caller, foreign=(seen.uid, seen.gid) != caller)

    async def _probe(self, image: Image, words: list[str]) -> _Seen:
        options = [*confined(self._engine, self._args, "none"), *labelled(self._labels), *words, *self._args.engine_arg]
        command = ["run", "--rm", *options, image.digest, "-c", PROBE]
        try:
            told, notices = await self._engine.call_with_notices(*command, seconds=self._args.startup_timeout)
        except EngineError as error:
            raise self._refused(f"a container of image '{image.name}'", error) from None
        for line in notices.splitlines():
            if _BROKEN_PROMISE.search(line):
                self._say(f"{self._engine.name}: {line.strip()}")
        seen = _Seen.of(told.removesuffix("\n").split("\n"))
        if seen is None:
            raise BackendError(
                f"image '{image.name}' lacks what trials need: /bin/sh with 'id' and 'printf'", code=UNAVAILABLE
            )
        return seen

    async def start_empty(self) -> None:
        """Start a container in which there is no program, which needs no image. Raises BackendError.

        All that is left to go wrong is that its program is not found, and engines have an exit code for that.
        """
        with tempfile.TemporaryDirectory(prefix="vally-empty-") as directory:
            words = [*confined(self._engine, self._args, "none"), *labelled(self._labels), *self._args.engine_arg]
            command = ["run", "--rm", *words, "--rootfs", directory]
            try:
                await self._engine.call(*command, seconds=self._args.startup_timeout)
            except EngineError as error:
                if error.returncode != NOT_FOUND:
                    raise self._refused("a container", error) from None

    def _refused(self, what: str, error: EngineError) -> BackendError:
        name = self._engine.name
        needs_settings = name == "podman" and _WITHOUT_SYSTEMD.search(str(error))
        hints = (PODMAN_SETTINGS,) if needs_settings else ()
        return BackendError(f"{name} cannot start {what}: {error}", code=UNAVAILABLE, hints=hints)


def _caller(engine: Engine) -> tuple[int, int]:
    """Who the caller is for the engine: one without root maps root inside to the caller."""
    if engine.rootless or not hasattr(os, "geteuid"):
        return 0, 0
    return os.geteuid(), os.getegid()


def _identity(
    image: Image, seen: _Seen, words: list[str], caller: tuple[int, int], *, foreign: bool = False
) -> Identity:
    return Identity(
        image=image.digest,
        name=image.name,
        uid=seen.uid,
        gid=seen.gid,
        words=tuple(words),
        path=seen.path,
        perl=seen.perl,
        forwarder=seen.forwarder,
        foreign=foreign,
        caller=f"{caller[0]}:{caller[1]}",
    )
