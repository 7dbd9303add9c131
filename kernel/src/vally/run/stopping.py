"""Why and how a run ends early: signals, fail-fast, a full disk, a closed stdout."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from vally.run.signals import SIGNAL_REASONS, received_signals, stop_reason

if TYPE_CHECKING:
    from vally.run.inputs import StopSignal


LOOP_PATIENCE_S = 10.0
"""How much longer than `--shutdown-timeout` a plugin may block the event loop before a signal ends the process."""


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
        self.closing = False

    @property
    def stopped(self) -> bool:
        """Whether no further trial may start."""
        return self.stop_reason is not None

    @property
    def cancelled(self) -> bool:
        """Whether trials were asked to end."""
        return self.stop_reason in SIGNAL_REASONS or self.stdout_closed

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
        if self.cancelled:
            stop.set("cancelled")

    def unregister(self, stop: StopSignal) -> None:
        """Forget the stop signal of a trial that ended."""
        self._running.discard(stop)

    def signals(self) -> AbstractContextManager[None]:
        """Handle signals that ask for an end while the body runs; only possible in the main thread."""
        return received_signals(self._on_signal, self._announce, self._shutdown_timeout_s + LOOP_PATIENCE_S)

    def _announce(self) -> None:
        if self.closing:
            # Every item has its record by now: what is left to wait for are plugins.
            self._notice("stopping: waiting for plugins to finish (Ctrl-C again to abort)")
            return
        count = len(self._running)
        self._notice(f"stopping: waiting for {count} running trial{'s' if count != 1 else ''} (Ctrl-C again to abort)")

    def _on_signal(self, number: int) -> None:
        self.signal_number = number
        if not self.closing:
            self.cancel(stop_reason(number))
