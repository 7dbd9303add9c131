"""Reading files that a user wrote: sizes, UTF-8, and positions of offsets."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

from vally.spec.diagnostics import Collector
from vally.spec.nodes import Node, Source

if TYPE_CHECKING:
    from pathlib import Path

SPEC_BYTES = 4 * 2**20
PROJECT_BYTES = 2**20
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_file(path: Path, source: Source, limit: int, collector: Collector, *, pipes: bool = False) -> bytes | None:
    """Bytes of a file of at most `limit` bytes, or None with a diagnostic; pipes only where one was asked for."""
    if source.content is not None:
        return source.content
    try:
        if not pipes and _would_wait(path):
            raise ValueError("it is not a regular file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
            size = len(data) if len(data) <= limit else path.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        collector.add("file-not-found", source, file=source.display, reason=reason[:1].lower() + reason[1:])
        return None
    if size > limit:
        collector.add("file-too-large", source, size=size, limit=limit)
        return None
    return data


def _would_wait(path: Path) -> bool:
    """Whether a pipe, a socket or a device stands there; a pipe in a directory that is searched has no other end."""
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def decode(data: bytes, source: Source, collector: Collector) -> str | None:
    """UTF-8 text without its byte-order mark, or None with a diagnostic."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        collector.add("yaml-encoding", Node(source, 1, 1), offset=0)
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        collector.add("yaml-encoding", position_at(source, before, len(before)), offset=error.start)
        return None
    return text.removeprefix("\ufeff")


def position_at(source: Source, text: str, offset: int, first_line: int = 1) -> Node:
    """The position of an offset."""
    breaks = list(_LINE_END.finditer(text, 0, offset))
    start = breaks[-1].end() if breaks else 0
    return Node(source, first_line + len(breaks), offset - start + 1)
