"""Pipes and devices in places where git reads a file without looking at its kind, and would wait for ever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from vally_backend_local.gitlinks import git_directory

_RULE_FILES = frozenset({".gitignore", ".gitattributes", ".gitmodules"})


def blocking_file(root: Path) -> Path | None:
    """Return such a file below `root`, or the HEAD of a nested repository wherever it lies, when there is one."""
    for directory, names in _directories(root):
        for name in sorted(_RULE_FILES & names):
            if _is_special(directory / name):
                return directory / name
        if ".git" in names and directory != root:
            repository = git_directory(directory)
            if repository is not None and _is_special(repository / "HEAD"):
                return repository / "HEAD"
    return None


def _directories(root: Path) -> Iterator[tuple[Path, set[str]]]:
    for directory, names, files in os.walk(root):
        yield Path(directory), {*names, *files}
        if ".git" in names:
            names.remove(".git")


def _is_special(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
