"""Telling whether what is to be staged is the same as before."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vally_backend_local.copying import PERMISSIONS, no_checkpoint


@dataclass(frozen=True)
class SourceDigest:
    """`content` depends on names, kinds, permission bits and contents; `status` changes with every write."""

    content: str
    status: str


def digest_source(path: Path, checkpoint: Callable[[], None] = no_checkpoint) -> SourceDigest:
    """Read a file or directory completely. Raises OSError."""
    content, status = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    for name, entry in _entries(path):
        checkpoint()
        found = entry.lstat()
        _add(status, name, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        _add(content, name, stat.S_IFMT(found.st_mode), found.st_mode & PERMISSIONS, _content(entry, found))
    return SourceDigest(content.hexdigest(), status.hexdigest())


def source_status(path: Path) -> str:
    """Return `status` of the source as it is now, without reading contents. Raises OSError."""
    status = hashlib.blake2b(digest_size=16)
    for name, entry in _entries(path):
        found = entry.lstat()
        _add(status, name, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return status.hexdigest()


def _entries(path: Path) -> Iterator[tuple[str, Path]]:
    """Everything below a directory in a fixed order with names relative to it, or one file with an empty name."""
    real = path.resolve()
    if not real.is_dir():
        yield "", real
        return
    pending = [real]
    while pending:
        directory = pending.pop()
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            found = Path(entry.path)
            yield found.relative_to(real).as_posix(), found
            if entry.is_dir(follow_symlinks=False):
                pending.append(found)


def _content(path: Path, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return str(path.readlink())
    if not stat.S_ISREG(found.st_mode):
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _add(digest: hashlib.blake2b, *facts: object) -> None:
    digest.update(repr(facts).encode("utf-8", "surrogateescape"))
