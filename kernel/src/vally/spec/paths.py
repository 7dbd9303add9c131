"""Paths of files that specs name: their bases, their absolute form, and what stands there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vally.spec.nodes import ScalarNode

_DRIVE = re.compile(r"[A-Za-z]:")
_MAGIC = re.compile(r"[*?\[{]|[!@+]\(")


def absolute(base: Path, text: str) -> Path:
    """A path from its base, with `.` and `..` resolved and symbolic links kept."""
    return Path(os.path.normpath(os.path.join(base, text)))  # noqa: PTH118  # Path would not resolve `..`


def exists(path: Path) -> bool:
    """Whether something stands there; unlike `Path.exists` false, not an error, for names that cannot be."""
    return os.path.exists(path)  # noqa: PTH110


def is_dir(path: Path) -> bool:
    """Whether a directory stands there; false for names that cannot be."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: Path) -> bool:
    """Whether a regular file stands there; false for names that cannot be."""
    return os.path.isfile(path)  # noqa: PTH113


def is_absolute(text: str) -> bool:
    """Whether a path as written is absolute on any platform."""
    return text.startswith(("/", "\\")) or _DRIVE.match(text) is not None


def is_written_absolute(node: ScalarNode) -> bool:
    """Whether a path is absolute in the file itself, before placeholders were filled."""
    return is_absolute(node.text if node.original is None else node.original)


def has_magic(text: str) -> bool:
    """Whether a path is a glob."""
    return _MAGIC.search(text) is not None


def repository_root(path: Path) -> Path | None:
    """The nearest directory at or above a path that holds `.git`, a file or a directory; no process is started."""
    start = path if is_dir(path) else path.parent
    return next((directory for directory in (start, *start.parents) if exists(directory / ".git")), None)


def relative_display(path: Path, *roots: Path) -> str:
    """A path as records and messages name it: relative to the first root it lies below, else absolute, with `/`."""
    for root in roots:
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.as_posix()
