"""Long reports through the user's pager."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from vally import is_terminal

DEFAULT_PAGER = "less"
_LESS = "FRX"
"""Leave at once what fits on the screen, keep colours, and leave the text on the screen."""


class _Paged:
    """Writes to a pager, and otherwise looks like the terminal in front of which it stands."""

    def __init__(self, pipe: IO[bytes], terminal: Any) -> None:
        self._pipe = pipe
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._pipe.write(text.encode(self.encoding, "replace"))
        return len(text)

    def flush(self) -> None:
        self._pipe.flush()

    @property
    def encoding(self) -> str:
        return getattr(self._terminal, "encoding", None) or "utf-8"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)


@contextlib.contextmanager
def paged(environ: Mapping[str, str]) -> Iterator[None]:
    """Send stdout to the pager while it is a terminal and `PAGER` is not empty; leaving the pager ends the report."""
    command = _command(environ)
    if not command or not is_terminal(sys.stdout):
        yield
        return
    started: list[subprocess.Popen[bytes]] = []
    try:
        # Once it runs it is ended whatever happens, so no signal may come before it is known.
        with signals_held(), contextlib.suppress(OSError):
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": _LESS, **environ}))
        with _through(started[0]) if started else contextlib.nullcontext():
            yield
    finally:
        for process in started:
            _end(process)


@contextlib.contextmanager
def _through(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send stdout to a pager, and wait until the user leaves it."""
    assert process.stdin is not None
    stream = cast("Any", _Paged(process.stdin, sys.stdout))
    # The user leaves before the end, or presses Ctrl-C, which belongs to the pager.
    with contextlib.suppress(BrokenPipeError), _keys_left_to_the_pager(), contextlib.redirect_stdout(stream):
        yield
    with contextlib.suppress(OSError):
        process.stdin.close()
    while process.poll() is None:
        with _keys_left_to_the_pager():
            process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hear signals that end the program after the body; they stay as they are outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: heard.append(number))
        for name in ("SIGINT", "SIGTERM", "SIGHUP")
        if (number := getattr(signal, name, None)) is not None and callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in heard:
            signal.raise_signal(number)


@contextlib.contextmanager
def _keys_left_to_the_pager() -> Iterator[None]:
    """Ignore Ctrl-C; signals that end the program are kinds of it, and end it."""
    try:
        yield
    except KeyboardInterrupt as error:
        if type(error) is not KeyboardInterrupt:
            raise


def _command(environ: Mapping[str, str]) -> list[str]:
    named = environ.get("PAGER")
    if named is not None:
        try:
            words = shlex.split(named)
        except ValueError:
            words = []
        return words if words and shutil.which(words[0], path=environ.get("PATH")) else []
    return [DEFAULT_PAGER] if shutil.which(DEFAULT_PAGER, path=environ.get("PATH")) else []
