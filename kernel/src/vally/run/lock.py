"""The lock of a run directory: one writer at a time."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vally.errors import VallyError
from vally.model.jsonio import encode_line, parse_json, parse_timestamp, timestamp

LOCK_NAME = ".lock"
_CLOCK_ERROR = timedelta(seconds=5)


class LockError(VallyError):
    """Another process writes to the run directory, or may do so."""


class RunLock:
    """Exclusive use of a run directory from `acquire` to `release`, or as a context manager.

    `display` says how messages name a path.
    """

    def __init__(self, directory: Path, display: Callable[[Path], str] = str) -> None:
        self.path = directory / LOCK_NAME
        self._display = display
        self._content: bytes | None = None

    def acquire(self) -> str | None:
        """Take the lock; returns a warning when it was left by a dead process. Raises `LockError`."""
        warning: str | None = None
        if not self._create():
            warning = self._take_over()
            if not self._create():
                raise self._held(_read(self.path))
        return warning

    def _create(self) -> bool:
        holder = {"host": platform.node(), "pid": os.getpid(), "startedAt": timestamp()}
        content = encode_line(holder)
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            return False
        except OSError as error:
            raise LockError(
                f"cannot create the lock: {error.strerror or error}", code="run-locked", where=self._display(self.path)
            ) from error
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        self._content = content
        return True

    def _take_over(self) -> str | None:
        holder = _read(self.path)
        if not _is_dead(holder):
            raise self._held(holder)
        assert holder is not None
        # Renaming shows whether the lock is still the dead one: two processes may try this at once.
        aside = self.path.with_name(f"{LOCK_NAME}.{secrets.token_hex(6)}.tmp")
        try:
            self.path.rename(aside)
        except FileNotFoundError:
            return None
        if _read(aside) != holder:
            with contextlib.suppress(OSError):
                os.link(aside, self.path)
            aside.unlink()
            raise self._held(_read(self.path))
        aside.unlink()
        return f"took over the lock of process {holder.get('pid')}, which has ended without removing it"

    def _held(self, holder: dict[str, Any] | None) -> LockError:
        if holder is None:
            text = "the run directory is locked, and its lock cannot be read"
        else:
            text = (
                f"the run directory is in use by process {holder.get('pid')} on {holder.get('host')} "
                f"since {holder.get('startedAt')}"
            )
        return LockError(
            text,
            code="run-locked",
            where=self._display(self.path),
            hints=("wait until that run has ended; if it is gone, remove the lock file",),
        )

    def release(self) -> None:
        """Give the lock back; a lock that is not ours any more stays."""
        content, self._content = self._content, None
        if content is None:
            return
        with contextlib.suppress(OSError):
            if self.path.read_bytes() == content:
                self.path.unlink()

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_being_written(directory: Path) -> bool:
    """Whether a process may still write to a run directory: there is a lock, and not one of a process that ended."""
    path = directory / LOCK_NAME
    return path.exists() and not _is_dead(_read(path))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_dead(holder: dict[str, Any] | None) -> bool:
    """Whether a lock belongs to a process of this host that has ended."""
    if holder is None or holder.get("host") != platform.node():
        return False
    pid = holder.get("pid")
    if type(pid) is not int or pid <= 0:
        return False
    import psutil

    try:
        started = datetime.fromtimestamp(psutil.Process(pid).create_time()).astimezone()
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
    locked = parse_timestamp(holder.get("startedAt"))
    # The number belongs to another process by now when that one started after the lock was made.
    return locked is not None and started > locked + _CLOCK_ERROR
