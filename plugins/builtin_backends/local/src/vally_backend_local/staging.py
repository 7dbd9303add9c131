"""Putting files and directories of the host into a workspace or asset directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from vally_backend_local.copying import PERMISSIONS, copy_file, no_checkpoint
from vally_backend_local.failures import SetupError, from_os_error

GIT_NAME = ".git"


@dataclass
class Stager:
    """Copies sources below `root`, a real path; later ones overwrite earlier ones.

    `checkpoint` is called per file and may raise to give up. `warnings` collects what was left out on purpose.
    """

    root: Path
    checkpoint: Callable[[], None] = no_checkpoint
    warnings: list[str] = field(default_factory=list)

    def stage(self, source: Path, dest: str, *, keep_name: bool = False) -> None:
        """Copy one file, or the contents of one directory, to the relative POSIX path `dest`. Raises SetupError."""
        try:
            if source.is_dir():
                self._stage_directory(source, dest)
            elif source.exists():
                self._stage_file(source, dest, keep_name)
            else:
                raise SetupError(f"file to stage not found: {source}", code="environment-file-not-found")
        except OSError as error:
            raise from_os_error(error, f"stage '{source}'") from error

    def _stage_directory(self, source: Path, dest: str) -> None:
        real, parts = source.resolve(), _parts(source, dest)
        target = self.root.joinpath(*parts)
        if target != real and target.is_relative_to(real):
            raise SetupError(f"cannot stage '{source}' into itself ({target})", code="environment-file-conflict")
        target = self._directory(parts, source)
        if not _same(real, target):
            self._merge(_Tree(source, real), real, target)

    def _stage_file(self, source: Path, dest: str, keep_name: bool) -> None:
        parts = _parts(source, dest)
        if keep_name or not parts or self.root.joinpath(*parts).is_dir():
            parts = (*parts, source.name)
        target = self._directory(parts[:-1], source) / parts[-1]
        self._put_file(source.resolve(), target, source)

    def _directory(self, parts: tuple[str, ...], source: Path) -> Path:
        """Return the real directory at `parts` below the root, made when missing; links out of the root are refused."""
        current = self.root
        for part in parts:
            current = self._enter(current / part, source)
        return current

    def _enter(self, path: Path, source: Path) -> Path:
        if not os.path.lexists(path):
            path.mkdir()
            return path
        real = path.resolve()
        if path.is_symlink() and not real.is_relative_to(self.root):
            raise SetupError(
                f"cannot stage '{source}': '{self._shown(path)}' is a symbolic link that leaves the workspace",
                code="environment-file-escape",
            )
        if not real.is_dir():
            self._conflict(source, path, "a file", "a directory")
        return real

    def _merge(self, tree: _Tree, directory: Path, target: Path) -> None:
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            self.checkpoint()
            self._merge_entry(tree, entry, target / entry.name)

    def _merge_entry(self, tree: _Tree, entry: os.DirEntry[str], target: Path) -> None:
        path = Path(entry.path)
        if entry.is_symlink():
            self._put_link(tree, path, target)
        elif entry.is_dir(follow_symlinks=False):
            if entry.name == GIT_NAME and target.is_dir():
                self._conflict(path, target, "a repository", "free for another one")
            below = self._enter(target, path)
            self._merge(tree, path, below)
            below.chmod(path.stat().st_mode & PERMISSIONS)
        elif entry.name == GIT_NAME and tree.points_outside(path):
            # It would hand the agent somebody else's repository, writable.
            self.warnings.append(f"'{path}' was not staged: it points to a repository outside of '{tree.shown}'")
        else:
            self._put_file(path, target, path)

    def _put_file(self, real: Path, target: Path, source: Path) -> None:
        mode = real.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise SetupError(
                f"cannot stage '{source}': neither a file, nor a directory, nor a symbolic link",
                code="environment-setup",
            )
        if _same(real, target):
            return
        self._make_room(target, source)
        copy_file(real, target)

    def _put_link(self, tree: _Tree, link: Path, target: Path) -> None:
        text = tree.link_text(link)
        self._make_room(target, link)
        target.symlink_to(text)

    def _make_room(self, target: Path, source: Path) -> None:
        """Remove what lies at `target`: writing into it would follow a link."""
        if target.is_dir() and not target.is_symlink():
            self._conflict(source, target, "a directory", "a file")
        target.unlink(missing_ok=True)

    def _conflict(self, source: Path, target: Path, there: str, wanted: str) -> NoReturn:
        raise SetupError(
            f"cannot stage '{source}': '{self._shown(target)}' is already {there}, not {wanted}",
            code="environment-file-conflict",
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True)
class _Tree:
    """A directory being copied: as it was named, and its real path."""

    shown: Path
    real: Path

    def link_text(self, link: Path) -> str:
        """Return what the copy of a link must say so that it stays inside the copy; raises SetupError when it cannot.

        Links are kept as they are unless they are absolute or take a way outside of the tree.
        """
        text, aim = link.readlink(), _real(link)
        if not aim.is_relative_to(self.real):
            raise SetupError(
                f"cannot stage '{link}': the symbolic link leads out of '{self.shown}' (to '{text}')",
                code="environment-file-escape",
            )
        if not text.is_absolute() and self._stays_inside(link, text):
            return str(text)
        return os.path.relpath(aim, link.parent)

    def points_outside(self, gitfile: Path) -> bool:
        """Whether a `.git` file names a git directory that is not part of the tree."""
        with gitfile.open(encoding="utf-8", errors="replace") as file:
            text = file.read(4096).strip()
        if not text.startswith("gitdir:"):
            return False
        named = Path(text.removeprefix("gitdir:").strip())
        if named.is_absolute():
            return True
        return not _real(gitfile.parent / named).is_relative_to(self.real)

    def _stays_inside(self, link: Path, text: Path) -> bool:
        depth = len(link.parent.relative_to(self.real).parts)
        for part in text.parts:
            depth += -1 if part == ".." else 1
            if depth < 0:
                return False
        return True


def _parts(source: Path, dest: str) -> tuple[str, ...]:
    parts = PurePosixPath(dest).parts
    if dest.startswith("/") or ".." in parts or GIT_NAME in parts[:1]:
        raise SetupError(
            f"cannot stage '{source}': '{dest}' is not a path inside the workspace", code="environment-file-escape"
        )
    return parts


def _real(path: Path) -> Path:
    # Unlike Path.resolve, this does not raise for a link that leads to itself.
    return Path(os.path.realpath(path))


def _same(source: Path, target: Path) -> bool:
    return target.exists() and source.samefile(target)
