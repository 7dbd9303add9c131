"""Starting the processes of a trial, or of a grading, in sandboxes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vally import Guardian, LocalProcessRunner, ProcessStartError, ProviderConfig
from vally_backend_local import GRADER_INPUT, Forward, ModelRelays
from vally_backend_sandbox.launching import Limits, sandboxed
from vally_backend_sandbox.mounts import Access, View


@dataclass(frozen=True)
class Confinement:
    """How the processes of one part of a trial are confined.

    `hidden_when_there` are directories that are made later and are none of the processes' business. `withheld` are
    variables, with their values, that no process gets; `private` names variables and the directories they name when
    they would name none that the process can see.
    """

    bwrap: str
    view: View
    network: Literal["none", "model", "host"]
    limits: Limits
    hidden_when_there: tuple[Path, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, Path] = field(default_factory=dict)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment as a process may have it."""
        kept = {name: value for name, value in env.items() if self.withheld.get(name) != value}
        for name, directory in self.private.items():
            if name not in kept or not self.view.sees(Path(kept[name])):
                kept[name] = str(directory)
        return kept

    def command(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], forwards: Sequence[Forward] = ()
    ) -> list[str]:
        """The command that runs `argv` confined. Raises `ProcessStartError` when it could not start."""
        self._check(argv[0], cwd, env)
        extra: dict[Path, Access] = {path: "hide" for path in self.hidden_when_there if path.is_dir()}
        named = env.get(GRADER_INPUT)
        if named is not None:
            extra[Path(os.path.realpath(named))] = "ro"
        return sandboxed(
            argv,
            bwrap=self.bwrap,
            mounts=self.view.arguments(extra),
            cwd=cwd,
            network=self.network == "host",
            limits=self.limits,
            forwards=forwards,
            drop="" if "LC_CTYPE" in env else "LC_CTYPE",
        )

    def _check(self, program: str, cwd: Path, env: Mapping[str, str]) -> None:
        """Find here what inside would only be an exit code of the launcher."""
        if not cwd.is_dir():
            number = errno.ENOTDIR if cwd.exists() else errno.ENOENT
            raise ProcessStartError.from_error(OSError(number, os.strerror(number), str(cwd)), program)
        if not self.view.sees(cwd):
            raise _unseen(program, cwd, f"directory '{cwd}' is hidden in the sandbox")
        file = str(cwd / program) if Path(program).name != program else program
        found = shutil.which(file, path=env.get("PATH", os.defpath))
        if found is None:
            number = errno.EACCES if _is_only_not_executable(file) else errno.ENOENT
            raise ProcessStartError.from_error(OSError(number, os.strerror(number)), program)
        if not self.view.sees(Path(found)):
            raise _unseen(program, Path(found).parent, f"'{found}' is hidden in the sandbox")


def _is_only_not_executable(file: str) -> bool:
    return os.sep in file and Path(file).exists()


def _unseen(program: str, directory: Path, why: str) -> ProcessStartError:
    advice = f"make it visible with --backend-args ro={directory}"
    return ProcessStartError("ENOENT", f"cannot start '{program}': {why}; {advice}")


@dataclass(frozen=True)
class WayOut:
    """The relays of a trial and the directory for their sockets, which the trial's processes see."""

    relays: ModelRelays
    directory: Path


class SandboxRunner(LocalProcessRunner):
    """A runner whose processes are confined as `confinement` says; with the network `model` it needs a `way_out`."""

    def __init__(
        self,
        trial_id: str,
        env: Mapping[str, str],
        confinement: Confinement,
        *,
        cwd: Path,
        owned_dirs: Iterable[Path] = (),
        removable_dirs: Iterable[Path] = (),
        guardian: Guardian | None = None,
        on_close: Callable[[], None] | None = None,
        way_out: WayOut | None = None,
    ) -> None:
        super().__init__(
            trial_id, env, cwd=cwd, owned_dirs=owned_dirs, removable_dirs=removable_dirs, guardian=guardian
        )
        self._confinement = confinement
        self._default_cwd = cwd
        self._on_close = on_close
        self._way_out = way_out
        self.network = confinement.network

    def confined(
        self, argv: list[str], *, cwd: Path | None, env: Mapping[str, str]
    ) -> tuple[list[str], Mapping[str, str]]:
        """Return the command that runs `argv` in the sandbox. Raises `ProcessStartError` when it could not start."""
        inside = self._confinement.environment(env)
        forwards = () if self._way_out is None else self._way_out.relays.forwards
        return self._confinement.command(argv, cwd or self._default_cwd, inside, forwards), inside

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig:
        """The provider as it is, or behind a loopback port of the sandbox. Raises `ExecutorError`."""
        if self._way_out is None:
            return await super().reach_provider(provider, warn)
        return await self._way_out.relays.reach(provider, self._way_out.directory, warn)

    async def kill_all(self, grace: float = 2.0) -> int:
        """End every process, and the ways out that nobody needs any more."""
        found = await super().kill_all(grace)
        if self._way_out is not None:
            self._way_out.relays.close()
        return found

    def close(self) -> None:
        """Say that nothing is left of the trial."""
        super().close()
        if self._on_close is not None:
            self._on_close()
