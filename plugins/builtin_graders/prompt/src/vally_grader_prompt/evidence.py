"""What judges are shown of a run: files, and excerpts of them for the message."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import anyio
import anyio.to_thread

from vally_grader_prompt.windows import fair_limit, window

EXCERPT_LENGTH = 6_000
LONG_EXCERPT_LENGTH = 60_000
EXCERPTS_LENGTH = 200_000


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One file; `path` is relative with `/`, as the operating system names it."""

    path: str
    content: bytes

    @classmethod
    def of(cls, path: str, text: str) -> EvidenceFile:
        """A file of a text, in which lone surrogates become U+FFFD."""
        return cls(path, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceItem:
    """One thing to look at.

    `name` is what it is called for a judge that reads no files. `text` is what its excerpt is taken from; `long_text`
    the same for a judge that reads no files, when that differs. The first of `files` is the one that is listed; `more`
    tells of the others.
    """

    name: str
    description: str
    files: tuple[EvidenceFile, ...]
    text: str
    long_text: str | None = None
    more: str = ""


@dataclass(frozen=True)
class Evidence:
    """All evidence of one question; `missing` names the kinds that resolved to nothing."""

    items: tuple[EvidenceItem, ...]
    missing: tuple[str, ...] = ()

    @cached_property
    def files(self) -> tuple[EvidenceFile, ...]:
        """All files."""
        return tuple(file for item in self.items for file in item.files)

    @cached_property
    def token(self) -> str:
        """What delimiters carry: nobody can write it into the evidence, because the evidence decides it."""
        digest = hashlib.sha256()
        for file in self.files:
            path = os.fsencode(file.path)
            digest.update(f"{len(path)} {len(file.content)} ".encode())
            digest.update(path + file.content)
        return digest.hexdigest()[:32]

    def listing(self, *, with_files: bool) -> str:
        """One line per item, then one per missing kind."""
        lines = [_file_line(item) if with_files else _text_line(item) for item in self.items]
        return "\n".join([*lines, *(f"- {kind}: not available" for kind in self.missing)])

    def excerpts(self, *, with_files: bool) -> list[tuple[str, str]]:
        """A heading and a text for each item, shortened to the limits of the two kinds of judges."""
        if with_files:
            return [(item.files[0].path, window(item.text, EXCERPT_LENGTH)) for item in self.items]
        texts = [item.text if item.long_text is None else item.long_text for item in self.items]
        limit = fair_limit([len(text) for text in texts], LONG_EXCERPT_LENGTH, EXCERPTS_LENGTH)
        return [(item.name, window(text, limit)) for item, text in zip(self.items, texts, strict=True)]


def _file_line(item: EvidenceItem) -> str:
    first = item.files[0]
    return f"- {first.path} ({len(first.content)} bytes): {item.description}{item.more}"


def _text_line(item: EvidenceItem) -> str:
    text = item.text if item.long_text is None else item.long_text
    return f"- {item.name} ({len(text)} characters): {item.description}"


@asynccontextmanager
async def evidence_directory(files: Sequence[EvidenceFile]) -> AsyncIterator[tuple[Path, tuple[Path, ...]]]:
    """A fresh directory with these files, and their paths; removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="vally-judge-"))
    try:
        paths = await anyio.to_thread.run_sync(_write, directory, files)
        yield directory, paths
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, directory, True)


def _write(directory: Path, files: Iterable[EvidenceFile]) -> tuple[Path, ...]:
    paths = []
    for file in files:
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        paths.append(path)
    return tuple(paths)
