"""Diff texts and patch files made from two trees, with their size limits."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from vally_backend_local.git_process import SnapshotError
from vally_backend_local.private_repository import PrivateRepository

MAX_DIFF_BYTES = 64 << 20


@dataclass(frozen=True)
class DiffResult:
    """A unified diff as text, or the one-line reason why there is none; `size` counts its UTF-8 bytes."""

    text: str | None
    size: int = 0
    error: str | None = None


class TextCollector:
    """Decodes a stream, counts all of it and keeps at most `limit` UTF-8 bytes; invalid bytes become U+FFFD."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._parts: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, chunk: bytes, final: bool = False) -> None:
        text = self._decoder.decode(chunk, final)
        self.size += len(text) if text.isascii() else len(text.encode())
        if self.size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(text)

    def text(self) -> str | None:
        """Everything that was fed, None when it was more than the limit."""
        return None if self.size > self._limit else "".join(self._parts)


def diff_trees(repository: PrivateRepository, before: str, after: str, limit: int = MAX_DIFF_BYTES) -> DiffResult:
    """Return the diff of two trees; never raises SnapshotError but says in the result what went wrong."""
    collector = TextCollector(limit)
    try:
        if before != after:
            repository.diff(before, after, collector.feed)
    except SnapshotError as error:
        return DiffResult(None, error=error.message)
    collector.feed(b"", final=True)
    text = collector.text()
    if text is None:
        return DiffResult(None, collector.size, f"diff has {collector.size} bytes, at most {limit} are kept")
    return DiffResult(text, collector.size)


def write_patch(repository: PrivateRepository, before: str, after: str, target: Path) -> int:
    """Write the exact change of two trees to `target` and return its bytes; without a change no file is made.

    Raises SnapshotError and then leaves no file behind.
    """
    if before == after:
        return 0
    try:
        with target.open("wb") as file:
            repository.patch(before, after, file.write)
            return file.tell()
    except OSError as error:
        target.unlink(missing_ok=True)
        raise SnapshotError(f"cannot write {target}: {error.strerror}") from error
    except SnapshotError:
        target.unlink(missing_ok=True)
        raise
