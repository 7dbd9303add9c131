"""Signals that ask a run to end: the first one politely, the second one at once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

SIGNAL_REASONS = ("interrupted", "terminated")
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def stop_reason(number: int) -> str:
    """The `stopReason` of a run that a signal ended."""
    return "interrupted" if number == signal.SIGINT else "terminated"


@contextlib.contextmanager
def received_signals(
    on_signal: Callable[[int], None], notice: Callable[[], None], patience_s: float = math.inf
) -> Iterator[None]:
    """Call `on_signal` in the event loop for the first signal; a second one ends the process whatever it is doing.

    `notice` is called at once, also when a plugin blocks the event loop; a loop that does not come round within
    `patience_s` is treated as if there was a second signal. Handlers of before are put back afterwards. Does nothing
    outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    first: list[int] = []
    heard = threading.Event()

    def tell(number: int) -> None:
        heard.set()
        on_signal(number)

    def handle(number: int, _: Any) -> None:
        # This runs between any two instructions, also when a plugin blocks the event loop.
        if first:
            _abort(number)
        first.append(number)
        loop.call_soon_threadsafe(tell, number)
        notice()
        if patience_s != math.inf:
            threading.Thread(target=_wait_for, args=(heard, patience_s, number), daemon=True).start()

    numbers = _wanted()
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        with contextlib.suppress(NotImplementedError):
            # Makes a signal wake the loop up, whichever thread the system hands it to.
            loop.add_signal_handler(number, _nothing)
        signal.signal(number, handle)
    try:
        yield
    finally:
        heard.set()
        for number in numbers:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, before[number] or signal.SIG_DFL)


def _wait_for(heard: threading.Event, seconds: float, number: int) -> None:
    if not heard.wait(seconds):
        _abort(number)


def _wanted() -> list[signal.Signals]:
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    # Who starts the program under `nohup` wants it to outlive the terminal.
    return [number for number in known if number != getattr(signal, "SIGHUP", None) or not _is_ignored(number)]


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _nothing() -> None:
    return None


def _abort(number: int) -> NoReturn:
    # The guardian process sees the end of this one and kills what its trials left; results are on disk.
    with contextlib.suppress(OSError):
        os.write(2, b"aborted\n")
    os._exit(128 + number)
