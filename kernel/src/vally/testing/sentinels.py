"""Proofs that a test left nothing behind and touched nothing: processes and directory trees."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def process_sentinel(*trial_ids: str, patience: float = 5.0) -> Iterator[None]:
    """Fail with `AssertionError` when a process is left that the block started or that bears one of the trial ids.

    What is still ending gets `patience` seconds.
    """
    import psutil

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    until = time.monotonic() + patience
    while (left := _left(before, trial_ids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left, f"processes left: {', '.join(left)}"


def _left(before: set[int], trial_ids: tuple[str, ...]) -> list[str]:
    import psutil

    from vally.processes import find_marked

    left = {}
    for child in psutil.Process().children(recursive=True):
        if child.pid not in before:
            left[child.pid] = f"{child.pid} ({_name(child)})"
    for trial_id in trial_ids:
        for entry in find_marked(trial_id):
            left[entry.pid] = f"{entry.pid} (of trial {trial_id})"
    return list(left.values())


def _name(process: object) -> str:
    import psutil

    try:
        return str(process.name())  # type: ignore[attr-defined]  # psutil has no types for it
    except psutil.Error:
        return "?"


def tree_digest(path: Path) -> str:
    """Digest of a directory: names, modes, modification times, link targets and contents, `.git` included."""
    digest = hashlib.sha256()
    for entry in sorted(_entries(path), key=lambda item: os.fsencode(item)):
        status = entry.lstat()
        facts = (entry.relative_to(path).as_posix(), status.st_mode, status.st_mtime_ns)
        digest.update(repr(facts).encode("utf-8", "surrogatepass"))
        if stat.S_ISLNK(status.st_mode):
            digest.update(os.fsencode(entry.readlink()))
        elif stat.S_ISREG(status.st_mode):
            digest.update(hashlib.sha256(entry.read_bytes()).digest())
    return digest.hexdigest()


def _entries(path: Path) -> Iterator[Path]:
    for entry in path.iterdir():
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)
