"""Copying and removing trees of files.

A copy shares no inode with its source: contents are cloned where the file system can, else copied, never hard linked,
so that an edit in one workspace shows in no other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

PERMISSIONS = 0o777
SMALL_FILE_BYTES = 128 * 1024
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def no_checkpoint() -> None:
    """The checkpoint of work that nobody cancels."""


def copy_file(source: Path | str, target: Path | str, *, keep_time: bool = False) -> None:
    """Copy contents and permission bits of a regular file to a path that does not exist yet."""
    reader = os.open(source, _READ_FLAGS)
    try:
        found = os.fstat(reader)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "not a regular file", os.fspath(source))
        _write_copy(reader, found, target, keep_time)
    finally:
        os.close(reader)


def _write_copy(reader: int, found: os.stat_result, target: Path | str, keep_time: bool) -> None:
    writer = os.open(target, _WRITE_FLAGS, 0o600)
    try:
        _copy_contents(reader, writer, found.st_size)
        if hasattr(os, "fchmod"):
            os.fchmod(writer, found.st_mode & PERMISSIONS)
        if keep_time and os.utime in os.supports_fd:
            os.utime(writer, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(writer)


def _copy_contents(reader: int, writer: int, size: int) -> None:
    if size > SMALL_FILE_BYTES and hasattr(os, "copy_file_range"):
        # Clones where the file system can, and copies inside the kernel elsewhere.
        with contextlib.suppress(OSError):
            while os.copy_file_range(reader, writer, size):
                pass
    while chunk := os.read(reader, max(SMALL_FILE_BYTES, 1)):
        view = memoryview(chunk)
        while view:
            view = view[os.write(writer, view) :]


def copy_tree(source: Path, target: Path, *, checkpoint: Callable[[], None] = no_checkpoint) -> None:
    """Copy a tree exactly: links as they are, permission bits and modification times.

    `target` may exist as an empty directory. `checkpoint` is called now and then and may raise to give up.
    """
    checkpoint()
    target.mkdir(mode=0o700, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            _copy_entry(entry, target / entry.name, checkpoint)
    found = source.stat()
    target.chmod(found.st_mode & PERMISSIONS)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_entry(entry: os.DirEntry[str], target: Path, checkpoint: Callable[[], None]) -> None:
    if entry.is_symlink():
        target.symlink_to(Path(entry.path).readlink())
    elif entry.is_dir(follow_symlinks=False):
        copy_tree(Path(entry.path), target, checkpoint=checkpoint)
    else:
        copy_file(entry.path, target, keep_time=True)


def tree_bytes(root: Path) -> int:
    """Return the size of all regular files below a directory."""
    total = 0
    for entry in walk(root):
        if entry.is_file(follow_symlinks=False):
            total += entry.stat(follow_symlinks=False).st_size
    return total


def walk(root: Path) -> list[os.DirEntry[str]]:
    """Return everything below a directory, links not followed; what cannot be listed is left out."""
    found: list[os.DirEntry[str]] = []
    pending: list[str] = [str(root)]
    while pending:
        try:
            with os.scandir(pending.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue
        found.extend(entries)
        pending.extend(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    return found


def remove_tree(path: Path) -> None:
    """Remove a directory, also one whose directories were made unwritable; of a link only the link itself.

    Raises OSError when something stays.
    """
    if path.is_symlink():
        path.unlink()
        return
    try:
        path.rmdir()
        return
    except FileNotFoundError:
        return
    except OSError:
        # Not empty, the usual case, or not a directory that can simply go.
        with contextlib.suppress(OSError):
            shutil.rmtree(path)
    if os.path.lexists(path):
        _make_removable(path)
        shutil.rmtree(path)


def _make_removable(path: Path) -> None:
    pending = [path]
    while pending:
        directory = pending.pop()
        with contextlib.suppress(OSError):
            directory.chmod(0o700)
            with os.scandir(directory) as entries:
                pending.extend(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
