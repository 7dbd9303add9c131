"""The scratch directory of a run, and removing what runs left behind that were killed.

Names of temporary directories begin with the token of their run, whose scratch directory is locked as long as the run
lives. A scratch directory that nobody locks belongs to a run that died, and so does everything with its token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vally import SCRATCH_LOCK, SCRATCH_PREFIX, lock_file
from vally_backend_local.copying import remove_tree

KEEP = "keep"
YOUNG_S = 60.0
"""Age below which a scratch directory may not be locked yet although its run lives."""


@dataclass
class RunScratch:
    """One locked directory; `token` begins the names of all temporary directories of the run."""

    directory: Path
    token: str
    lock: IO[bytes]

    def close(self) -> None:
        """Remove the directory. Raises OSError."""
        self.lock.close()
        remove_tree(self.directory)


def scratch_directory(temporary: Path, token: str) -> Path:
    """Where the scratch directory of a run is, or was."""
    return temporary / f"{SCRATCH_PREFIX}{token}"


def make_scratch(temporary: Path, *, keep_workspaces: bool) -> RunScratch:
    """Make the scratch directory of a run; `keep_workspaces` holds for a run that is killed, too. Raises OSError."""
    token = secrets.token_hex(4)
    directory = scratch_directory(temporary, token)
    directory.mkdir(mode=0o700)
    if keep_workspaces:
        (directory / KEEP).touch()
    lock = (directory / SCRATCH_LOCK).open("ab")
    lock_file(lock, exclusive=True)
    return RunScratch(directory, token, lock)


def sweep(temporary: Path) -> None:
    """Remove what runs of this user left in the temporary directory when they were killed; trouble is ignored."""
    for directory in _own_directories(temporary, SCRATCH_PREFIX):
        with contextlib.suppress(OSError):
            if time.time() - directory.stat().st_mtime > YOUNG_S:
                _sweep_run(temporary, directory)


def _sweep_run(temporary: Path, directory: Path) -> None:
    with (directory / SCRATCH_LOCK).open("ab") as lock:
        if not lock_file(lock, exclusive=True):
            return
        token = directory.name.removeprefix(SCRATCH_PREFIX)
        kinds = ("trial",) if (directory / KEEP).exists() else ("trial", "around")
        for kind in kinds:
            for path in _own_directories(temporary, f"vally-{kind}-{token}"):
                with contextlib.suppress(OSError):
                    remove_tree(path)
        remove_tree(directory)


def _own_directories(temporary: Path, prefix: str) -> Iterator[Path]:
    for path in sorted(temporary.glob(f"{prefix}*")):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == _user():
                yield path


def _user() -> int:
    # Where nobody can be asked every directory says that it belongs to 0.
    return os.geteuid() if hasattr(os, "geteuid") else 0
