"""Control groups that bound how many processes a trial has, for root, whom no resource limit binds."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
TRIES = 20
PAUSE_S = 0.05


class ProcessGroups:
    """Makes groups below `parent`, a directory of the controller `pids`; they go when their processes are gone."""

    def __init__(self, parent: Path, most: int) -> None:
        self._parent = parent
        self._most = most
        self._made: list[Path] = []

    def make(self, name: str) -> Path:
        """Make a group and return the file that a process writes its id to in order to enter. Raises OSError."""
        group = self._parent / f"vally-{name}"
        group.mkdir()
        self._made.append(group)
        (group / "pids.max").write_text(str(self._most))
        return group / "cgroup.procs"

    def remove(self, name: str) -> None:
        """Remove a group; one that still has processes is left to `close`."""
        group = self._parent / f"vally-{name}"
        if group in self._made and _removed(group, 1):
            self._made.remove(group)

    def close(self) -> list[Path]:
        """Remove all groups; blocks up to a second for each, and returns those that stayed."""
        made, self._made = self._made, []
        return [group for group in made if not _removed(group, TRIES)]


def _removed(group: Path, tries: int) -> bool:
    for number in range(tries):
        if number:
            time.sleep(PAUSE_S)
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                return False
        else:
            return True
    return False


def counting_directory(root: Path = ROOT) -> Path | None:
    """Where groups that count processes can be made: the controller's own hierarchy, or the unified one; else None."""
    for parent in (root / "pids", root):
        probe = parent / f"vally-probe-{os.getpid()}"
        try:
            probe.mkdir()
        except OSError:
            continue
        usable = (probe / "pids.max").exists()
        with contextlib.suppress(OSError):
            probe.rmdir()
        if usable:
            return parent
    return None
