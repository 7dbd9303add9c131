"""One container: the command that starts it, and its life from there to its removal."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from vally import LocalProcessRunner, ProcessStartError
from vally_backend_container.config import ContainerArgs, Mount
from vally_backend_container.engine import Engine, EngineError, said
from vally_backend_container.launching import IDLE, ending
from vally_backend_container.limits import LimitsHit, limits_hit
from vally_backend_local import ForwarderKind

SIGNAL_SECONDS = 10.0
SHELL = "/bin/sh"


@dataclass(frozen=True)
class Identity:
    """Who processes in containers of an image are, and what they find.

    `words` are the options of the engine that make them this user. `foreign` says that on this machine it is another
    user than the caller, who is `caller` (`uid:gid`) for the engine.
    """

    image: str
    name: str
    uid: int
    gid: int
    words: tuple[str, ...]
    path: str
    perl: str | None
    forwarder: tuple[ForwarderKind, str] | None = None
    foreign: bool = False
    caller: str = "0:0"


@dataclass(frozen=True)
class Recipe:
    """How the containers of a part of a trial are made.

    `labels` tell whose they are. Directories made in `covers` lie over those which are hidden, where they exist.
    """

    engine: Engine
    args: ContainerArgs
    identity: Identity
    network: str
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    hidden: tuple[Path, ...]
    covers: Path

    def command(self, name: str) -> list[str]:
        """The call that starts a container which waits."""
        words = ["run", "--detach", "--name", name, *confined(self.engine, self.args, self.network)]
        words += labelled(self.labels)
        # What is made later and is none of the processes' business, such as the record of the workspace's beginning.
        covers = [Mount(self._cover(path), path) for path in self._visible()]
        words += [*self.identity.words, *mounted([*self.mounts, *covers])]
        return self.engine.command(*words, *self.args.engine_arg, self.identity.image, "-c", IDLE)

    def _visible(self) -> list[Path]:
        """The directories to hide, without those that are below another and not mounted there."""
        there = [path for path in self.hidden if path.is_dir()]
        shown = {**{mount.target: True for mount in self.mounts}, **dict.fromkeys(there, False)}
        return [path for path in there if next((shown[place] for place in path.parents if place in shown), True)]

    def _cover(self, path: Path) -> Path:
        """A directory with nothing in it but places for what is mounted below."""
        cover = self.covers / secrets.token_hex(8)
        cover.mkdir(mode=0o755)
        for mount in self.mounts:
            if mount.target != path and mount.target.is_relative_to(path):
                place = cover / mount.target.relative_to(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                if mount.source.is_dir():
                    place.mkdir(exist_ok=True)
                else:
                    place.touch()
        return cover


def confined(engine: Engine, args: ContainerArgs, network: str) -> list[str]:
    """Options of `run` that every container has; those of the caller may follow."""
    # With a way to its model only, an agent has no network, and the way is a socket.
    words = [
        "--pull",
        "never",
        "--network",
        "none" if network == "model" else network,
        "--entrypoint",
        SHELL,
        "--workdir",
        "/",
    ]
    words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]
    # Nobody's files get other labels of SELinux because a trial looked at them.
    words += ["--security-opt", "label=disable", "--log-driver", "none", "--no-healthcheck"]
    words += ["--memory", str(args.memory), "--pids-limit", str(args.pids)]
    if args.cpus is not None:
        words += ["--cpus", f"{args.cpus:g}"]
    if args.platform is not None:
        words += ["--platform", args.platform]
    if engine.name == "podman":
        # It would hand the proxies of its own environment on.
        return [*words, "--http-proxy=false"]
    return words if args.runtime is None else [*words, "--runtime", args.runtime]


def labelled(labels: Mapping[str, str]) -> list[str]:
    """Options of `run` for labels."""
    return [part for key, value in labels.items() for part in ("--label", f"{key}={value}")]


def mounted(mounts: Sequence[Mount]) -> list[str]:
    """Options of `run` for mounts."""
    words = []
    for mount in mounts:
        fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
        fields += ["readonly"] if mount.read_only else []
        # The engines read a line of comma-separated values.
        words += ["--mount", ",".join(map(_quoted, fields))]
    return words


def _quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field


class Container:
    """Starts, ends and removes one container; its calls go through the runner of the trial, which ends them too."""

    def __init__(self, recipe: Recipe, runner: LocalProcessRunner, part: str) -> None:
        self._recipe = recipe
        self._engine = recipe.engine
        self._runner = runner
        self._seconds = recipe.args.startup_timeout
        self.name = f"vally-{part}-{secrets.token_hex(8)}"

    async def start(self) -> None:
        """Start it. Raises EngineError."""
        self._guard()
        command = self._recipe.command(self.name)
        try:
            done = await self._runner.run(command, cwd=Path("/"), env=self._engine.env, timeout=self._seconds)
        except ProcessStartError as error:
            raise EngineError(error.message) from None
        self._check(None if done.timed_out else done.returncode, done.stderr)

    def start_now(self) -> None:
        """Start it while everything waits. Raises EngineError."""
        self._guard()
        try:
            done = subprocess.run(
                self._recipe.command(self.name),
                env=self._engine.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._check(None, b"")
        else:
            self._check(done.returncode, done.stderr)

    def _check(self, code: int | None, stderr: bytes) -> None:
        """Raise EngineError when a start went wrong; `code` is None when it took too long."""
        if code is None:
            name, seconds = self._engine.name, self._seconds
            raise EngineError(f"'{name} run' did not end within {seconds:g} s (startup-timeout)")
        if code != 0:
            raise EngineError(said(stderr) or f"exit code {code}", code)

    def _guard(self) -> None:
        self._runner.at_death(self._engine.command(*self._engine.removal([self.name])), self._engine.env)

    def enter(self, command: Sequence[str], cwd: Path, names: Sequence[str]) -> list[str]:
        """The call that runs a command inside; `names` are variables of the call that it gets."""
        words = ["exec", "--interactive", "--workdir", str(cwd)]
        words += [part for name in names for part in ("--env", name)]
        return self._engine.command(*words, self.name, *command)

    async def signal(self, name: str, session: int) -> bool:
        """Send a signal to a session inside; False when that could not be done, as in a container full of processes."""
        try:
            await self._engine.call("exec", self.name, *ending(name, session), seconds=SIGNAL_SECONDS)
        except EngineError:
            return False
        return True

    async def limits_hit(self) -> LimitsHit:
        """Which of its limits its processes ran into."""
        return await limits_hit(self._engine, self.name)

    async def remove(self) -> None:
        """End and remove it. Raises EngineError."""
        with anyio.CancelScope(shield=True):
            await self._engine.remove([self.name])
