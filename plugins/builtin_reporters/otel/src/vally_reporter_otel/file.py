"""Requests as lines of a file."""

from __future__ import annotations

from pathlib import Path


class FileDelivery:
    """Appends one line per request; a reader sees each as soon as it is written.

    A run that is continued tells of its earlier trials again, so their lines are not kept.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def send(self, body: bytes) -> None:
        """Write a line. Raises `OSError`."""
        self._file.write(body + b"\n")
        self._file.flush()

    def close(self) -> str | None:
        """Close the file."""
        self._file.close()
        return None
