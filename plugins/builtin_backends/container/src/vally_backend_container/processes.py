"""A process inside a container, seen through the engine's client that stands for it on this machine."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from vally import Completed, Process
from vally_backend_container.containers import Container
from vally_backend_container.engine import EngineError, said
from vally_backend_container.launching import Report, read_report, returncode

GRACE_SECONDS = 2.0
KILL_SECONDS = 5.0
_PAUSES_S = (0.005, 0.01, 0.02, 0.05)
"""Pauses between looks at what the launcher wrote; there is nothing to wait on that every engine has."""


class ContainerProcess:
    """See `Process`. `give_up` ends the container as a whole when the process cannot be ended."""

    def __init__(
        self,
        client: Process,
        container: Container,
        report: Path,
        *,
        exact: bool,
        give_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._client: Any = client
        self._container = container
        self._report = report
        self._exact = exact
        self._give_up = give_up
        self.pid = client.pid
        self.stdin, self.stdout, self.stderr = client.stdin, client.stdout, client.stderr

    @property
    def returncode(self) -> int | None:
        """None while the process runs; minus the signal's number when a signal ended it."""
        code: int | None = self._client.returncode
        return None if code is None else returncode(read_report(self._report), code, exact=self._exact)

    async def started(self, program: str, seconds: float) -> None:
        """Wait until the program runs. Raises ProcessStartError when it cannot, EngineError when that is not known."""
        with anyio.move_on_after(seconds):
            report = await self._told()
            if report.problem is not None:
                await self._client.wait()
                raise report.error(program)
            if report.session is not None:
                return
            raise EngineError(f"cannot start '{program}' in its container: {await self._complaint()}")
        raise EngineError(f"cannot start '{program}' in its container: no answer within {seconds:g} s")

    async def _told(self) -> Report:
        for number in range(2**31):
            ended = self._client.returncode is not None
            report = read_report(self._report)
            if ended or report.told:
                return report
            await anyio.sleep(_PAUSES_S[min(number, len(_PAUSES_S) - 1)])
        return Report()

    async def _complaint(self) -> str:
        """What the engine's client wrote before it ended."""
        text = b""
        with anyio.move_on_after(GRACE_SECONDS):
            async for piece in self._client.stderr:
                text += piece
        code = (await self._client.wait()).returncode
        return said(text) or f"the engine ended with exit code {code}"

    async def wait(self) -> Completed:
        """Wait for the end of the process itself; its pipes may be open longer."""
        done: Completed = await self._client.wait()
        code = self.returncode
        if code is None or code == done.returncode:
            return done
        name = signal.Signals(-code).name if code < 0 else None
        return replace(done, returncode=None if code < 0 else code, signal=name)

    async def terminate(self, grace: float = GRACE_SECONDS) -> None:
        """Ask everything in the session to end, by force after `grace` seconds; returns when it is gone."""
        with anyio.CancelScope(shield=True):
            if self._client.returncode is None and not await self._ended_inside(grace):
                await self._give_up()
            await self._client.terminate()

    async def kill(self) -> None:
        """End everything in the session by force; returns when it is gone."""
        await self.terminate(0)

    async def _ended_inside(self, grace: float) -> bool:
        session = read_report(self._report).session
        if session is None:
            return False
        steps = [("TERM", grace)] if grace > 0 else []
        for name, seconds in [*steps, ("KILL", KILL_SECONDS)]:
            if not await self._container.signal(name, session):
                return False
            with anyio.move_on_after(seconds):
                await self._client.wait()
                return True
        return False
