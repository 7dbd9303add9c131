"""A running process in a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.processes.result import ProcessStartError, completed
from vally.processes.scan import Marks, end_processes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anyio.abc import Process as AnyioProcess

    from vally.processes.result import Completed
    from vally.processes.scan import ProcessTable

GRACE_SECONDS = 2.0


class Process:
    """A running process and what it starts in its session.

    `stdin`, `stdout` and `stderr` are byte streams, `stdin` None when there is nothing to read. `started_by` is a
    reading of the process table's clock: the session is not older.
    """

    def __init__(self, process: AnyioProcess, table: ProcessTable) -> None:
        self._process = process
        self._table = table
        self._began = time.monotonic()
        self._duration_ms: int | None = None
        self.started_by = table.clock()
        self.pid: int = process.pid
        self.stdin: Any = process.stdin
        self.stdout: Any = process.stdout
        self.stderr: Any = process.stderr

    @classmethod
    async def spawn(
        cls, argv: list[str], *, cwd: Path | None, env: Mapping[str, str], table: ProcessTable, stdin: bool
    ) -> Process:
        """Start `argv` without a shell, with or without a pipe on its input; raises `ProcessStartError`."""
        source = subprocess.PIPE if stdin else subprocess.DEVNULL
        try:
            # Not to be cancelled half-way: the process would run, and nobody would know its session.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(argv, stdin=source, cwd=cwd, env=env, **_own_session())
        except (OSError, ValueError) as error:
            raise ProcessStartError.from_error(error, argv[0]) from None
        return cls(process, table)

    @property
    def returncode(self) -> int | None:
        """None while the process runs; minus the signal's number when a signal ended it."""
        return self._process.returncode

    async def wait(self) -> Completed:
        """Wait for the end of the process itself; its pipes may be open longer, and its output is not collected."""
        returncode = await self._process.wait()
        if self._duration_ms is None:
            self._duration_ms = round((time.monotonic() - self._began) * 1000)
        return completed(returncode, duration_ms=self._duration_ms)

    async def terminate(self, grace: float = GRACE_SECONDS) -> None:
        """Ask everything in the session to end, by force after `grace` seconds; returns when it is gone."""
        if self.returncode is None or self._group_exists():
            await end_in_thread(Marks(sessions={self.pid: self.started_by}), self._table, grace)
            await self._heard()

    async def kill(self) -> None:
        """End everything in the session by force; returns when it is gone."""
        await self.terminate(0)

    async def aclose(self) -> None:
        """Wait for the end of the process and close the pipes; one that cannot be ended is not waited for."""
        await self._heard()
        with anyio.CancelScope(shield=True):
            if self.returncode is not None:
                await self._process.aclose()
                return
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    await stream.aclose()

    async def _heard(self) -> None:
        """Wait until the event loop has heard of the end as well, for which it needs a moment; not for ever."""
        with anyio.move_on_after(GRACE_SECONDS, shield=True):
            await self._process.wait()

    def _group_exists(self) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


async def end_in_thread(marks: Marks, table: ProcessTable, grace: float) -> int:
    """Do `end_processes` in a thread of its own, also when cancelled; return how many processes were found."""

    def work() -> int:
        return end_processes(marks, table, grace=grace)

    found = 0
    # Waiting for a place among other blocking work would leave processes running.
    with anyio.CancelScope(shield=True):
        found += await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))
    return found


def _own_session() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
