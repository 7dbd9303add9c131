"""Long reports through the user's pager."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
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
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": _LESS, **environ})
    except OSError:
        yield
        return
    assert process.stdin is not None
    stream = cast("Any", _Paged(process.stdin, sys.stdout))
    try:
        # The user leaves before the end, or presses Ctrl-C, which belongs to the pager.
        with contextlib.suppress(BrokenPipeError), _keys_left_to_the_pager(), contextlib.redirect_stdout(stream):
            yield
        with contextlib.suppress(OSError):
            process.stdin.close()
        while process.poll() is None:
            with _keys_left_to_the_pager():
                process.wait()
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        if process.poll() is None:
            process.terminate()
            process.wait()


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
