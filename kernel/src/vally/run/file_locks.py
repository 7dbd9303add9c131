"""Locks that end with their process, however it ends."""

from __future__ import annotations

from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_file(file: IO[bytes], *, exclusive: bool) -> bool:
    """Lock a file until it is closed; an exclusive lock that would have to wait is not taken.

    Where files cannot be locked nothing is exclusive, and everything counts as taken by somebody.
    """
    if fcntl is None:
        return not exclusive
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
    except OSError:
        return not exclusive
    return True
