"""Files that graders read: the artifact directory first, else the workspace."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vally.errors import GraderError, VallyError
from vally.text.globs import InvalidGlob, escape_glob, expand_glob, leaves_root

if TYPE_CHECKING:
    from vally.model.trajectory import Trajectory

MAX_FILE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Matches:
    """What a path or glob matched: POSIX paths relative to `root`, sorted by code point."""

    root: Path
    origin: Literal["artifact", "workspace"]
    paths: tuple[str, ...]

    def files(self) -> tuple[str, ...]:
        """The matches that are no directories: files, and links that lead to no directory."""
        return tuple(path for path in self.paths if not (self.root / path).is_dir())


class UnreadableFile(VallyError):
    """A file that cannot be read; `reason` is an errno name, `too large` or `outside workspace`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot read '{path}': {reason}")
        self.path = path
        self.reason = reason


class ReadRoot:
    """The readable files of one trajectory."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory

    def resolve(self, pattern: str) -> Matches:
        """Match a path or glob; see `resolve_read_root`."""
        return resolve_read_root(self._trajectory, pattern)

    def read_text(self, matches: Matches, path: str, *, limit: int = MAX_FILE_BYTES) -> str:
        """Text of one match: UTF-8, invalid bytes replaced, without byte-order mark. Raises UnreadableFile.

        `limit` is in bytes.
        """
        try:
            data = _read(matches.root, path, limit)
        except OSError as error:
            raise UnreadableFile(path, errno.errorcode.get(error.errno or 0, "EIO")) from None
        return data.decode("utf-8", "replace").removeprefix("\ufeff")


def resolve_read_root(trajectory: Trajectory, pattern: str) -> Matches:
    """Match a path or glob in the artifact directory, and in the workspace when nothing matches there.

    A strict artifact directory is the only place. Raises GraderError of kind `workspace` when the place is not
    accessible, of kind `config` for a pattern that would leave it.
    """
    if leaves_root(pattern):
        raise GraderError(f"'{pattern}' does not stay inside the workspace", kind="config")
    directory = Path(trajectory.artifact_dir) if trajectory.artifact_dir else None
    if directory is not None and directory.is_dir():
        found = _expand(directory, pattern)
        if found or trajectory.artifact_dir_strict:
            return Matches(directory, "artifact", found)
    elif trajectory.artifact_dir_strict:
        shown = trajectory.artifact_dir or "(not recorded)"
        raise GraderError(f"Artifact directory is not accessible: {shown}", kind="workspace")
    root = accessible_workspace(trajectory)
    return Matches(root, "workspace", _expand(root, pattern))


def accessible_workspace(trajectory: Trajectory) -> Path:
    """The workspace directory; raises GraderError of kind `workspace` when it cannot be read from here."""
    if trajectory.workspace_status == "remote":
        raise GraderError("Workspace is remote and cannot be read from this machine", kind="workspace")
    root = Path(trajectory.work_dir)
    if not trajectory.work_dir or not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
        raise GraderError(f"Workspace is not accessible: {trajectory.work_dir}", kind="workspace")
    return root


def _expand(root: Path, pattern: str) -> tuple[str, ...]:
    # `app/[id]/page.tsx` names itself, whatever it means as a glob; a malformed glob can only name itself.
    found = set(expand_glob(root, escape_glob(pattern), dotfiles=True))
    with contextlib.suppress(InvalidGlob):
        found.update(expand_glob(root, pattern, dotfiles=True))
    return tuple(sorted(found))


def _read(root: Path, path: str, limit: int) -> bytes:
    target = Path(os.path.realpath(root / path, strict=True))
    if not target.is_relative_to(os.path.realpath(root)):
        raise UnreadableFile(path, "outside workspace")
    # Without blocking, because a named pipe without a writer would otherwise wait for ever.
    descriptor = os.open(target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = file.read(limit + 1) if status.st_size <= limit else None
    if data is None or len(data) > limit:
        raise UnreadableFile(path, "too large")
    return data
