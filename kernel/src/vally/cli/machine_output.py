"""Keeping machine output pure: what anybody but a reporter prints on stdout goes to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from vally.run.report_stream import is_reporting

STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def reserved_stdout(reserved: bool) -> Iterator[None]:
    """Leave stdout to the body's `reporting()` parts; does nothing when it is not `reserved`.

    The output of child processes that inherit stdout goes to stderr as well.
    """
    if not reserved:
        yield
        return
    with _own_descriptor(sys.stdout) as stream:
        before, sys.stdout = sys.stdout, _Switch(stream)
        try:
            yield
        finally:
            sys.stdout = before


def write_machine_output(text: str) -> None:
    """Write text for programs on stdout, in one flush: as UTF-8 with LF, whatever encoding people read there."""
    stream, data = sys.stdout, text.encode("utf-8", "backslashreplace")
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(data.decode())
    else:
        stream.flush()
        binary.write(data)
    stream.flush()


class _Switch:
    """Stdout for reports, stderr for everybody else."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream if is_reporting() else sys.stderr, name)


@contextlib.contextmanager
def _own_descriptor(stream: Any) -> Iterator[Any]:
    """A stream that goes where `stream` went while the descriptor that children inherit leads to stderr."""
    if _descriptor(stream) != STDOUT:
        yield stream
        return
    stream.flush()
    own = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    copy = os.fdopen(own, "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        yield copy
    finally:
        # A reader that is gone was noticed when the report was written.
        with contextlib.suppress(OSError):
            copy.flush()
        os.dup2(own, STDOUT)
        with contextlib.suppress(OSError):
            copy.close()


def _descriptor(stream: Any) -> int | None:
    try:
        descriptor: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return descriptor
