"""Why and how a run ends early: signals, fail-fast, a full disk, a closed stdout."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from vally.run.inputs import StopSignal

_REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Stopping:
    """State of an early end. `skip_reason` is what unstarted items are recorded with."""

    def __init__(self, notice: Callable[[str], None], shutdown_timeout_s: float) -> None:
        self._notice = notice
        self._shutdown_timeout_s = shutdown_timeout_s
        self._running: set[StopSignal] = set()
        self.stop_reason: str | None = None
        self.signal_number: int | None = None
        self.write_failed = False
        self.stdout_closed = False

    @property
    def stopped(self) -> bool:
        """Whether no further trial may start."""
        return self.stop_reason is not None

    @property
    def partial(self) -> bool:
        """Whether the run did not do what was planned."""
        return self.stop_reason is not None

    @property
    def skip_reason(self) -> str:
        """`skipReason` of items that never ran."""
        return {"fail-fast": "fail-fast", "budget-cost": "budget", "budget-tokens": "budget"}.get(
            self.stop_reason or "", "cancelled"
        )

    def stop(self, reason: str) -> None:
        """Start no further trial; running ones finish. The first reason stays."""
        if self.stop_reason is None:
            self.stop_reason = reason

    def cancel(self, reason: str) -> None:
        """Start no further trial and ask running ones to end."""
        self.stop(reason)
        for stop in tuple(self._running):
            stop.set("cancelled")

    def fail_write(self) -> None:
        """The results file cannot be written any more."""
        self.write_failed = True
        self.stop("error")

    def close_stdout(self) -> None:
        """Nobody reads stdout any more."""
        self.stdout_closed = True
        self.cancel("error")

    def register(self, stop: StopSignal) -> None:
        """Remember the stop signal of a trial that starts."""
        self._running.add(stop)
        if self.signal_number is not None or self.stdout_closed:
            stop.set("cancelled")

    def unregister(self, stop: StopSignal) -> None:
        """Forget the stop signal of a trial that ended."""
        self._running.discard(stop)

    @contextlib.asynccontextmanager
    async def signals(self, enabled: bool) -> AsyncIterator[None]:
        """Handle SIGINT and SIGTERM while the body runs; only possible in the main thread."""
        if not enabled or threading.current_thread() is not threading.main_thread():
            yield
            return
        async with anyio.create_task_group() as group:
            await group.start(self._receive)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _receive(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            task_status.started()
            async for number in received:
                self._on_signal(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self.signal_number is not None:
            # The guardian process sees the end of this one and kills what its trials left; results are on disk.
            self._notice("aborted")
            os._exit(128 + number)
        self.signal_number = int(number)
        count = len(self._running)
        self._notice(f"stopping: waiting for {count} running trial{'s' if count != 1 else ''} (Ctrl-C again to abort)")
        self.cancel(_REASONS.get(number, "interrupted"))
