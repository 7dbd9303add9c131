"""A bounded copy of the final workspace, taken for judges before a grader can change it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vally.errors import GraderError
from vally.run.read_root import accessible_workspace

if TYPE_CHECKING:
    from vally.model.trajectory import Trajectory

MAX_FILES = 500
MAX_FILE_BYTES = 64 * 2**10
MAX_TOTAL_BYTES = 2 * 2**20
MAX_PATH_LENGTH = 1_000
"""A longer path may not fit below the directory that judges read."""

_BINARY_HEAD = 8 * 2**10
_SKIPPED = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", "dist", "build", "target", "bin", "obj", "coverage")
)

LeftOut = Literal["link", "binary", "limit", "unreadable"]


@dataclass(frozen=True, slots=True)
class RepoFile:
    """One file of the workspace: POSIX path relative to it, size in bytes, and the content or why it was left out."""

    path: str
    size: int | None = None
    content: bytes | None = None
    left_out: LeftOut | None = None


@dataclass(frozen=True, slots=True)
class RepoSnapshot:
    """Files in path order; those over a limit, binary ones and links have no content."""

    files: tuple[RepoFile, ...]


def take_snapshot(trajectory: Trajectory) -> RepoSnapshot | None:
    """Copy the workspace of a trajectory into memory, at most 2 MiB; None when it is empty or cannot be read."""
    try:
        root = accessible_workspace(trajectory)
    except GraderError:
        return None
    files = tuple(_limited(root, sorted(_walk(root, ""), key=lambda file: file.path)))
    return RepoSnapshot(files) if files else None


def _walk(root: Path, prefix: str) -> Iterator[RepoFile]:
    pending = [prefix]
    while pending:
        prefix = pending.pop()
        try:
            entries = list(os.scandir(root / prefix))
        except OSError:
            continue
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.name == ".git":  # also the pointer file of a worktree, which has a path of this machine
                continue
            if entry.is_symlink():
                yield RepoFile(path, left_out="link")
            elif not entry.is_dir(follow_symlinks=False):
                yield RepoFile(path, _size(entry))
            elif not _is_skipped(entry.name):
                pending.append(f"{path}/")


def _is_skipped(directory: str) -> bool:
    # What tools make from other files tells a judge nothing.
    return directory in _SKIPPED or directory.endswith("_cache") or directory.startswith(".cache")


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _limited(root: Path, files: list[RepoFile]) -> Iterator[RepoFile]:
    count = total = 0
    for file in files:
        if file.left_out is not None:
            yield file
        elif file.size is None:
            yield replace(file, left_out="unreadable")
        elif (
            count == MAX_FILES
            or file.size > MAX_FILE_BYTES
            or total + file.size > MAX_TOTAL_BYTES
            or len(file.path) > MAX_PATH_LENGTH
        ):
            yield replace(file, left_out="limit")
        else:
            read = _read(root, file)
            if read.content is not None:
                count, total = count + 1, total + len(read.content)
            yield read


def _read(root: Path, file: RepoFile) -> RepoFile:
    assert file.size is not None
    content = _bytes(root, file.path, file.size)
    if content is None:
        return replace(file, left_out="unreadable")
    if b"\0" in content[:_BINARY_HEAD]:
        return replace(file, left_out="binary")
    return replace(file, content=content)


def _bytes(root: Path, path: str, limit: int) -> bytes | None:
    # What was a file a moment ago may be a link or a pipe now.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(root / path, flags)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        except OSError:
            return None
