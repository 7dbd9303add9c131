"""Requests as lines of a file."""

from __future__ import annotations

import contextlib
from pathlib import Path


class FileDelivery:
    """Appends one line per request; a reader sees each as soon as it is written.

    A run that is continued tells of its earlier trials again, so their lines are not kept. What cannot be written ends
    the file at its last whole line; a file without any is removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self._problem: str | None = None
        try:
            # Without a buffer nothing is left over that would be written after a failure.
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            self._problem = f"no spans were written to {path.name}: {error.strerror or error}"

    def send(self, body: bytes) -> None:
        """Write a line; the first failure ends the file."""
        if self._problem is not None:
            return
        line = memoryview(body + b"\n")
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            self._end(error)
        else:
            self._size += len(line)

    def _end(self, error: OSError) -> None:
        reason = error.strerror or error
        with contextlib.suppress(OSError):
            self._file.truncate(self._size)
        with contextlib.suppress(OSError):
            self._file.close()
        if self._size:
            self._problem = f"{self._path.name} ends before the run does: {reason}"
            return
        self._problem = f"no spans were written to {self._path.name}: {reason}"
        with contextlib.suppress(OSError):
            self._path.unlink()

    def close(self) -> str | None:
        """Close the file; returns what is missing in it, or None."""
        if self._problem is None:
            try:
                self._file.close()
            except OSError as error:
                self._end(error)
        return self._problem
