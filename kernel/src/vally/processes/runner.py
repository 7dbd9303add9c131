"""The process runner of this machine: starts the processes of one trial, knows them again and ends them."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from vally.processes.communicate import communicate
from vally.processes.process import GRACE_SECONDS, Process, end_in_thread
from vally.processes.result import ProcessStartError
from vally.processes.scan import Marks, process_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vally.model.evalspec import ProviderConfig
    from vally.processes.guardian import Guardian
    from vally.processes.result import Completed
    from vally.run.inputs import Process as RunningProcess

TRIAL_VARIABLE = "VALLY_TRIAL"
MAX_BYTES = 10 * 2**20

# Python ignores SIGPIPE and may set LC_CTYPE at its start; the program that follows must see neither.
LAUNCHER = """
import os, signal, sys
if sys.argv[1]:
    os.environ.pop(sys.argv[1], None)
for name in ("SIGPIPE", "SIGXFSZ"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
try:
    os.setsid()
except PermissionError:
    pass
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
"""


class LocalProcessRunner:
    """Runs the processes of one trial (or of the whole run) on this machine, each in a session of its own.

    `env` is the complete default environment and `cwd` the default working directory; `owned_dirs` are directories
    that vally made for the trial, `removable_dirs` those the guardian removes should vally die. To be used from one
    event loop.
    """

    network: Literal["host", "model", "none"] = "host"

    def __init__(
        self,
        trial_id: str,
        env: Mapping[str, str],
        *,
        cwd: Path | None = None,
        owned_dirs: Iterable[Path] = (),
        removable_dirs: Iterable[Path] = (),
        guardian: Guardian | None = None,
    ) -> None:
        self._trial_id = trial_id
        self._env = dict(env)
        self._cwd = cwd
        self._guardian = guardian
        self._owned, self._removable = tuple(owned_dirs), tuple(removable_dirs)
        self._table = process_table()
        self._processes: set[Process] = set()
        self._sessions: dict[int, float] = {}
        self._used = False
        self._marks = Marks(
            pairs=frozenset({os.fsencode(f"{TRIAL_VARIABLE}={trial_id}")}),
            dirs=(),
            sessions=self._sessions,
            since=self._table.clock(),
        )

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return command and environment for a library that starts the process itself.

        Raises `ProcessStartError` when the program does not exist: the launcher in front would hide it.
        """
        argv, env = self.confined(_checked(argv), cwd=cwd, env=env)
        program = argv[0]
        file = str(cwd / program) if Path(program).name != program else program
        if shutil.which(file, path=env.get("PATH", os.defpath)) is None:
            raise ProcessStartError("ENOENT", f"cannot start '{program}': no such program, or not executable")
        self._use()
        marked = {**env, TRIAL_VARIABLE: self._trial_id}
        if sys.platform == "win32":
            return list(argv), marked
        drop = "" if "LC_CTYPE" in env else "LC_CTYPE"
        return [sys.executable, "-I", "-S", "-c", LAUNCHER, drop, *argv], marked

    def confined(
        self, argv: list[str], *, cwd: Path | None, env: Mapping[str, str]
    ) -> tuple[list[str], Mapping[str, str]]:
        """Return the command that runs `argv` as this runner's processes run, and its environment; called once each.

        Subclasses put a sandbox or the client of a container engine in front. Raises `ProcessStartError`.
        """
        return argv, env

    def mark(self, name: str, value: str) -> None:
        """Know processes whose environment holds `name=value` as those of this trial."""
        self._use()
        pair = os.fsencode(f"{name}={value}")
        self._marks = self._marks._replace(pairs=self._marks.pairs | {pair})
        if self._guardian:
            self._guardian.mark(self._trial_id, pair)

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig:
        """Return the provider as it is, for processes that share the network of this machine.

        Subclasses with the network `model` return how their processes reach it.
        """
        return provider

    def at_death(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Have a command run, in exactly the environment `env`, should vally die before `close`.

        For what killing processes does not end, such as a container. It comes after the trial's processes and before
        the removal of its directories.
        """
        self._use()
        if self._guardian:
            self._guardian.command(self._trial_id, argv, env)

    async def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> RunningProcess:
        """Start a process with three pipes; `env` replaces the default environment.

        The caller reads both outputs. Raises `ProcessStartError`.
        """
        return await self._start(argv, cwd, env, stdin=True)

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
        """Run a process to its end and return what it wrote, at most `max_bytes` of each output.

        `timeout` is in seconds. After it, and on cancellation, the process and its group are ended, two seconds after
        the request by force. What a process leaves in the background runs on, as a server started for the agent
        must, until `kill_all`. Raises `ProcessStartError`.
        """
        process = await self._start(argv, cwd, env, stdin=bool(stdin))
        until = None if timeout is None else partial(anyio.sleep, timeout)
        try:
            return await communicate(process, stdin=stdin, max_bytes=max_bytes, until=until)
        finally:
            if process.returncode is None:
                await process.terminate()
            await self._close(process)

    async def kill_all(self, grace: float = GRACE_SECONDS) -> int:
        """End every process of the trial, wherever it has gone, and return how many there were.

        Costs nothing as long as nothing was started, wrapped or marked.
        """
        if not self._used:
            return 0
        found = await end_in_thread(self._marks, self._table, grace)
        for process in list(self._processes):
            await self._close(process)
        return found

    def close(self) -> None:
        """Take the trial off the guardian's list; to be called when its directories are gone."""
        if self._guardian and self._used:
            self._guardian.close(self._trial_id)

    async def _start(
        self, argv: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None, *, stdin: bool
    ) -> Process:
        self._use()
        place = cwd or self._cwd
        command, env = self.confined(_checked(argv), cwd=place, env=self._env if env is None else env)
        marked = {**env, TRIAL_VARIABLE: self._trial_id}
        process = await Process.spawn(command, cwd=place, env=marked, table=self._table, stdin=stdin)
        self._processes.add(process)
        self._sessions[process.pid] = process.started_by
        if self._guardian:
            self._guardian.session(self._trial_id, process.pid, process.started_by)
        return process

    async def _close(self, process: Process) -> None:
        await process.aclose()
        self._processes.discard(process)

    @property
    def used(self) -> bool:
        """Whether a process was started, wrapped or marked."""
        return self._used

    def _use(self) -> None:
        if self._used:
            return
        # Most trials of executors without processes never come here.
        dirs = tuple(os.fsencode(os.path.realpath(path)) for path in self._owned)
        self._marks = self._marks._replace(dirs=dirs)
        if self._guardian:
            removable = [os.path.realpath(path) for path in self._removable]
            self._guardian.open(self._trial_id, self._marks, removable)
        self._used = True


def _checked(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str) or not argv:
        raise TypeError("argv must be a list of strings with at least the program")
    return [os.fspath(item) for item in argv]
