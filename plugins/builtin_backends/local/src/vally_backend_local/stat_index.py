"""What changed in a workspace since it was last looked at, told from file status in nanoseconds.

Git's own index compares whole seconds, so an edit that keeps the size and sets the time back could hide in it. Here a
path counts as unchanged only when everything `lstat` tells is the same *and* its last change lies clearly before the
last look; every other path is hashed again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vally_backend_local.git_process import SnapshotError
from vally_backend_local.gitlinks import head_commit, is_repository

# Kernels stamp files with a clock that ticks every 1 to 10 ms, and some file systems keep only even seconds.
FINE_TICK_NS = 25_000_000
COARSE_TICK_NS = 2_100_000_000

Status = tuple[int, int, int, int, int, int]  # mode, size, mtime_ns, ctime_ns, inode, device


@dataclass(frozen=True)
class TreeState:
    """A tree that was taken, and what is needed to take the next one cheaply.

    `files` maps each path of the tree to its status at `looked_at` (ns since the epoch), `links` each nested
    repository to its commit. Paths are bytes relative to the workspace, with `/`.
    """

    tree: str
    files: Mapping[bytes, Status]
    links: Mapping[bytes, str]
    looked_at: int


@dataclass
class Changes:
    """What to do with the index: `drop` these entries, then hash `stage` (a missing one is removed)."""

    files: dict[bytes, Status] = field(default_factory=dict)
    new_links: dict[bytes, str] = field(default_factory=dict)
    drop: list[bytes] = field(default_factory=list)
    stage: list[bytes] = field(default_factory=list)
    skipped: list[bytes] = field(default_factory=list)


class Workspace:
    """Looks at paths below one directory without ever following a symbolic link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = os.fsencode(root) + b"/"
        self._directories: dict[bytes, bool] = {b"": True}

    def absolute(self, path: bytes) -> Path:
        return self._root / os.fsdecode(path)

    def status(self, path: bytes) -> os.stat_result | None:
        """Return the status of `path`, None when it is absent. Raises SnapshotError when that cannot be told."""
        try:
            return os.lstat(self._prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SnapshotError(f"cannot read '{_shown(path)}': {error.strerror}") from error

    def is_beyond_link(self, path: bytes) -> bool:
        """Whether a parent of `path` is a symbolic link or no directory, so that the path is not in the workspace."""
        return not self._is_directory(path.rpartition(b"/")[0])

    def _is_directory(self, path: bytes) -> bool:
        known = self._directories.get(path)
        if known is None:
            found = self.status(path) if self._is_directory(path.rpartition(b"/")[0]) else None
            known = found is not None and stat.S_ISDIR(found.st_mode)
            self._directories[path] = known
        return known


def refresh_links(workspace: Workspace, links: Mapping[bytes, str]) -> tuple[dict[bytes, str], list[bytes]]:
    """Return the nested repositories that are still there with their commits, and the paths of the others."""
    kept: dict[bytes, str] = {}
    gone: list[bytes] = []
    for path in links:
        found = None if workspace.is_beyond_link(path) else workspace.status(path)
        if found and stat.S_ISDIR(found.st_mode) and is_repository(workspace.absolute(path)):
            kept[path] = head_commit(workspace.absolute(path))
        else:
            gone.append(path)
    return kept, gone


def compare_known(workspace: Workspace, state: TreeState, also: Iterable[bytes] = ()) -> Changes:
    """Look at the files of a state, and at the paths `also`, which are taken when they exist although ignored."""
    changes = Changes()
    for path, known in state.files.items():
        _compare(workspace, path, known, state.looked_at, changes)
    for path in also:
        if path not in state.files and not workspace.is_beyond_link(path):
            _add(workspace, path, changes)
    return changes


def add_others(workspace: Workspace, others: Iterable[bytes], changes: Changes) -> None:
    """Add the paths that git saw beside the known ones; nested repositories have a trailing slash."""
    for path in others:
        if path.endswith(b"/"):
            link = path.rstrip(b"/")
            changes.new_links[link] = head_commit(workspace.absolute(link))
        elif path not in changes.files:
            _add(workspace, path, changes)


def _compare(workspace: Workspace, path: bytes, known: Status, looked_at: int, changes: Changes) -> None:
    if workspace.is_beyond_link(path):
        changes.drop.append(path)
        return
    found = workspace.status(path)
    if found is None:
        changes.stage.append(path)
        return
    status = status_of(found)
    if status == known and not _is_racy(status, looked_at):
        changes.files[path] = known
    elif is_storable(path, found.st_mode):
        changes.files[path] = status
        changes.stage.append(path)
    else:
        changes.drop.append(path)
        _note_skipped(path, found.st_mode, changes)


def _add(workspace: Workspace, path: bytes, changes: Changes) -> None:
    found = workspace.status(path)
    if found is None:
        return
    if is_storable(path, found.st_mode):
        changes.files[path] = status_of(found)
        changes.stage.append(path)
    else:
        _note_skipped(path, found.st_mode, changes)


def _note_skipped(path: bytes, mode: int, changes: Changes) -> None:
    # Pipes, sockets and devices have no place in a diff; a file or link with a refused name is worth a word.
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        changes.skipped.append(path)


def status_of(found: os.stat_result) -> Status:
    return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def is_storable(path: bytes, mode: int) -> bool:
    """Whether git takes the path: regular files and links, but no name that could stand for `.git`."""
    if stat.S_ISLNK(mode):
        if path.rpartition(b"/")[2].lower() == b".gitmodules":
            return False
    elif not stat.S_ISREG(mode):
        return False
    return b".git" not in path.lower().split(b"/")


def _is_racy(status: Status, looked_at: int) -> bool:
    """Whether the path changed so shortly before it was looked at that a later change may bear the same time."""
    changed_at = status[3]
    tick = FINE_TICK_NS if changed_at % 1_000_000_000 else COARSE_TICK_NS
    return changed_at + tick >= looked_at


def now() -> int:
    """The time of a look, to be taken before the first path is looked at."""
    return time.time_ns()


def _shown(path: bytes) -> str:
    return path.decode("utf-8", errors="replace").replace("\n", "�")
