"""Nested repositories: which commit is checked out in one, found without running git in it.

Git in a nested repository would obey that repository's configuration, which the agent may have written; a broken one
would end the whole snapshot. So its HEAD is read here, from plain files only.
"""

from __future__ import annotations

import re
from pathlib import Path

# Stands for a nested repository whose HEAD names no commit (new, broken or in a format not read here).
NO_COMMIT = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_COMMIT = re.compile("[0-9a-f]{40}")
_FILE_BYTES = 16 << 20
_SYMREF_DEPTH = 5


def is_repository(path: Path) -> bool:
    """Whether the directory holds a `.git` of any kind."""
    entry = path / ".git"
    return entry.is_symlink() or entry.exists()


def head_commit(path: Path) -> str:
    """Return the commit checked out in the repository at `path`, or NO_COMMIT."""
    directory = git_directory(path)
    if directory is None:
        return NO_COMMIT
    common = _common_directory(directory)
    name, value = "HEAD", ""
    for _ in range(_SYMREF_DEPTH):
        # HEAD and other per-worktree refs lie in the worktree's own directory, branches in the common one.
        value = _read(directory / name) or _read(common / name)
        if not value.startswith("ref:"):
            break
        name = value.removeprefix("ref:").strip()
        if not name.startswith("refs/") or ".." in name:
            return NO_COMMIT
    value = value or _packed(common, name)
    return value if _COMMIT.fullmatch(value) else NO_COMMIT


def git_directory(path: Path) -> Path | None:
    """Return where the `.git` of the directory `path` is or points to; it need not exist."""
    entry = path / ".git"
    if entry.is_dir():
        return entry
    pointer = _read(entry)
    if not pointer.startswith("gitdir:"):
        return None
    return path / pointer.removeprefix("gitdir:").strip()


def _common_directory(directory: Path) -> Path:
    common = _read(directory / "commondir")
    return directory / common if common else directory


def _packed(common: Path, name: str) -> str:
    for line in _read(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read(path: Path) -> str:
    """The stripped content of a regular file; empty for everything else, so that a pipe never blocks."""
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_FILE_BYTES).strip()
    except (OSError, ValueError):
        return ""
