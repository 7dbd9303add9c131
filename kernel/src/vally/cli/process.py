"""The program as a process: its streams, the signals that end it, and leaving although plugins hang."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

THREAD_GRACE_S = 1.0
"""How long threads that are about to end are waited for."""
AGAIN_S = 0.02
"""After how long a signal is sent again whose exception was dropped."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def interrupted_code(error: BaseException) -> int:
    """The exit code after Ctrl-C or another signal; click hides what it was in the cause of its own exception."""
    found = error if isinstance(error, Terminated) else error.__cause__
    return 128 + (found.number if isinstance(found, Terminated) else signal.SIGINT)


def prepare_process() -> None:
    """Make streams usable whatever they are connected to, and let SIGTERM and SIGHUP clean up before they end."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # Records and reports are UTF-8 everywhere; what a terminal cannot show must not end the program.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)
    sys.unraisablehook = DroppedSignals(sys.unraisablehook)


class DroppedSignals:
    """Sends a signal once more whose exception Python dropped, as it does while it destroys an object."""

    def __init__(self, others: Callable[[Any], object]) -> None:
        self._others = others

    def __call__(self, dropped: Any) -> None:
        """Hook for exceptions that cannot be raised."""
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            self._others(dropped)
            return
        number = dropped.exc_value.number if isinstance(dropped.exc_value, Terminated) else signal.SIGINT
        threading.Thread(target=_send_again, args=(number,), daemon=True).start()


def _send_again(number: int) -> None:
    # Not before the hook has ended, in which the exception would get lost for good. What is dropped in a destruction
    # that still goes on gets to the hook once more.
    time.sleep(AGAIN_S)
    while _is_in_hook(sys._current_frames().get(threading.main_thread().ident or 0)):
        time.sleep(AGAIN_S)
    _send_to_main_thread(number)


def _is_in_hook(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not DroppedSignals.__call__.__code__:
        frame = frame.f_back
    return frame is not None


def _send_to_main_thread(number: int) -> None:
    if hasattr(signal, "pthread_kill"):
        # Ends waiting system calls of that thread too.
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def _terminate(number: int, _: Any) -> NoReturn:
    raise Terminated(number)


def _open_missing_streams() -> None:
    """Connect closed standard streams to nothing: files opened later must not take their place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def leave(code: int) -> NoReturn:
    """End the process, at once when threads of plugins hang, which the interpreter would wait for."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            discard(stream)
    if _threads_hang():
        os._exit(code)
    sys.exit(code)


def discard(stream: Any) -> None:
    """Let what a stream still holds go nowhere: it would raise again when the interpreter closes the stream."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _threads_hang() -> bool:
    end = time.monotonic() + THREAD_GRACE_S
    others = [item for item in threading.enumerate() if item is not threading.current_thread() and not item.daemon]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    return any(thread.is_alive() for thread in others)
