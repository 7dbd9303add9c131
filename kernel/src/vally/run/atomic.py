"""Files that are replaced as a whole, so that a crash leaves the old or the new content."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_STALE_SECONDS = 3600
_CHUNK_BYTES = 64 * 1024


def atomic_write(
    path: Path,
    data: bytes | str | Iterable[bytes | str],
    *,
    mode: int | None = None,
    is_first: bool = False,
    is_named: bool = False,
) -> None:
    """Write a file by rename: temporary file in the same directory, fsync, rename, fsync of the directory.

    `data` may come in pieces. `mode` are the permissions (e.g. 0o600), by default those of the umask. `is_first` tells
    that the directory is new, so that nobody can have left anything in it, `is_named` that the user named the file:
    links are followed then, and what is no file, such as a device or a pipe, is written to and stays what it is.
    Raises `OSError`; nothing is left then.
    """
    if is_named:
        if _is_stream(path):
            with path.open("wb", buffering=0) as stream:
                for piece in _encoded(data):
                    _write_all(stream.fileno(), piece)
            return
        path = Path(os.path.realpath(path))
    if not is_first:
        _remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode or 0o666)
    try:
        try:
            for piece in _encoded(data):
                _write_all(descriptor, piece)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_all(descriptor: int, data: bytes) -> None:
    # Every call gives other threads a turn, so a small file should take few.
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _encoded(data: bytes | str | Iterable[bytes | str]) -> Iterator[bytes]:
    """The bytes of all pieces, small ones put together."""
    waiting: list[bytes] = []
    size = 0
    for piece in [data] if isinstance(data, (bytes, str)) else data:
        encoded = piece.encode("utf-8", "replace") if isinstance(piece, str) else piece
        waiting.append(encoded)
        size += len(encoded)
        if size >= _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable where the platform can."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        # Some network file systems cannot sync directories; their content is as durable as they make it.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of writers of this file that are no more."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(?:(?P<pid>[0-9]+)-)?[^.]+\.tmp")
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):  # noqa: PTH208  # no Path objects for thousands of other files
            match = pattern.fullmatch(name)
            if match and _is_leftover(path.with_name(name), match["pid"]):
                with contextlib.suppress(OSError):
                    path.with_name(name).unlink()


def _is_leftover(path: Path, pid: str | None) -> bool:
    if pid is None or not _is_alive(int(pid)):
        return True
    return time.time() - path.stat().st_mtime > _STALE_SECONDS


def _is_alive(pid: int) -> bool:
    import psutil

    return pid == os.getpid() or psutil.pid_exists(pid)
