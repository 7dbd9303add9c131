"""Directories kept between trials and runs, one per key, and given up least recently used first."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vally import lock_file
from vally_backend_local.copying import remove_tree, tree_bytes

RECORD = "entry.json"
_LEFT_OVER_S = 86_400.0


class EntryStore:
    """Entries below one directory; safe for threads and processes.

    Entries are made under a temporary name and renamed, so that none is ever seen half made. An entry in use is locked
    and not pruned.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def entry(self, key: str, make: Callable[[Path], None]) -> Iterator[Path]:
        """Hand out the entry of `key`, locked, after calling `make` with an empty directory when there is none.

        Other threads of this process wait while one makes the entry. Raises what `make` raises, and OSError.
        """
        with contextlib.ExitStack() as stack:
            while not self._locked(key, stack):
                with self._building(key):
                    if not self._path(key).is_dir():
                        self._make(key, make)
            yield self._path(key)

    def prune(self, max_bytes: int) -> None:
        """Remove the least recently used entries beyond `max_bytes`; trouble is left to the next time."""
        if not self.directory.is_dir():
            return
        total = 0
        for path in sorted(self.directory.iterdir(), key=_used_at, reverse=True):
            if path.name.startswith("."):
                self._remove_left_over(path)
            elif path.is_dir():
                total += _recorded_bytes(path)
                if total > max_bytes:
                    self._remove(path)

    def _path(self, key: str) -> Path:
        return self.directory / key

    def _locked(self, key: str, stack: contextlib.ExitStack) -> bool:
        """Lock an entry for use; False when there is none."""
        path = self._path(key)
        if not path.is_dir():
            return False
        file = stack.enter_context(_lock_path(path).open("ab"))
        lock_file(file, exclusive=False)
        try:
            os.utime(path)
        except OSError:
            # Removed by another process before the lock was there.
            return False
        return True

    @contextlib.contextmanager
    def _building(self, key: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            yield

    def _make(self, key: str, make: Callable[[Path], None]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = self.directory / f".new-{secrets.token_hex(8)}"
        temporary.mkdir(mode=0o700)
        try:
            make(temporary)
            (temporary / RECORD).write_text(json.dumps({"bytes": tree_bytes(temporary)}), encoding="utf-8")
            with contextlib.suppress(OSError):
                # Fails when another process was faster; its entry is as good.
                temporary.rename(self._path(key))
        finally:
            remove_tree(temporary)
        if not self._path(key).is_dir():
            raise OSError(f"cannot write to the cache in '{self.directory}'")

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(OSError), _lock_path(path).open("ab") as file:
            if not lock_file(file, exclusive=True):
                return
            doomed = self.directory / f".old-{secrets.token_hex(8)}"
            path.rename(doomed)
            remove_tree(doomed)
            _lock_path(path).unlink()

    def _remove_left_over(self, path: Path) -> None:
        if path.is_dir() and _used_at(path) < time.time() - _LEFT_OVER_S:
            with contextlib.suppress(OSError):
                remove_tree(path)


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _recorded_bytes(path: Path) -> int:
    try:
        return int(json.loads((path / RECORD).read_bytes())["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
