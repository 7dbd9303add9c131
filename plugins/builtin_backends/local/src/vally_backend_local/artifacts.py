"""Copying the files that a stimulus wants kept from the workspace into the run directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILES = 10_000
MAX_BYTES = 256 << 20

_CHUNK_BYTES = 1 << 20
_MAX_WARNINGS = 20
# Neither a link put in the place of a file nor a pipe may lead the copy astray. Absent flags are those of Windows.
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class _LimitReached(Exception):
    """The copy has to stop; the message is the warning."""


@dataclass
class _Copy:
    workspace: Path
    target: Path
    max_files: int
    max_bytes: int
    files: int = 0
    size: int = 0
    warnings: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        source = self._source(path)
        if source is None:
            return
        try:
            reader = os.open(source, _READ)
        except OSError as error:
            self.warnings.append(f"artifact '{path}' was not copied: {error.strerror}")
            return
        with os.fdopen(reader, "rb") as file:
            facts = os.fstat(file.fileno())
            if stat.S_ISREG(facts.st_mode):
                self._check_limits(facts.st_size)
                self._write(file.read, path, facts.st_mode)

    def _source(self, path: str) -> Path | None:
        """The file itself, or the file in the workspace that a link leads to."""
        source = self.workspace / path
        if not source.is_symlink():
            return source
        try:
            real = source.resolve(strict=True)
        except (OSError, RuntimeError):
            self.warnings.append(f"artifact '{path}' was not copied: dangling link")
            return None
        if not real.is_relative_to(self.workspace):
            self.warnings.append(f"artifact '{path}' was not copied: outside workspace")
            return None
        return real if real.is_file() else None

    def _check_limits(self, size: int) -> None:
        if self.files >= self.max_files:
            raise _LimitReached(f"artifacts: stopped after {self.files} files (limit {self.max_files})")
        if self.size + size > self.max_bytes:
            raise _LimitReached(f"artifacts: stopped after {self.size} bytes (limit {self.max_bytes})")

    def _write(self, read: Callable[[int], bytes], path: str, mode: int) -> None:
        target = self.target / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self.files += 1
        permissions = 0o777 if mode & 0o111 else 0o666
        with os.fdopen(os.open(target, _CREATE, permissions), "wb") as file:
            while chunk := read(_CHUNK_BYTES):
                self._check_growth(len(chunk))
                file.write(chunk)

    def _check_growth(self, size: int) -> None:
        # A file may still grow while it is copied.
        self.size += size
        if self.size > self.max_bytes:
            raise _LimitReached(f"artifacts: stopped after {self.max_bytes} bytes (limit {self.max_bytes})")


def copy_artifacts(
    workspace: Path,
    target: Path,
    *,
    include: Callable[[str], bool],
    exclude: Callable[[str], bool] = lambda _: False,
    enter_git: bool = False,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> list[str]:
    """Copy the files that `include` and not `exclude` accept to `target`, byte for byte, and return warnings.

    The callables get paths relative to the workspace, with `/`. Directories that are links are not entered, nor those
    named `.git` unless `enter_git`. A link to a file in the workspace is copied as that file; one that leaves it is not
    copied. `target` is made when there is something to copy. Never raises for what is in the workspace; raises OSError
    when `target` cannot be written.
    """
    root = workspace.resolve()
    copy = _Copy(root, target, max_files, max_bytes)
    try:
        for path in _files(root, "", enter_git, copy.warnings):
            if include(path) and not exclude(path):
                copy.add(path)
    except _LimitReached as stop:
        return [str(stop), *_capped(copy.warnings)]
    return _capped(copy.warnings)


def _files(root: Path, prefix: str, enter_git: bool, warnings: list[str]) -> Iterator[str]:
    """Paths of files and links below the workspace, sorted within each directory."""
    try:
        with os.scandir(root / prefix) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        warnings.append(f"artifacts of '{prefix or '.'}' were not copied: {error.strerror}")
        return
    for entry in entries:
        path = prefix + entry.name
        if not entry.is_dir(follow_symlinks=False):
            yield path
        elif enter_git or entry.name != ".git":
            yield from _files(root, path + "/", enter_git, warnings)


def _capped(warnings: list[str]) -> list[str]:
    if len(warnings) <= _MAX_WARNINGS:
        return warnings
    return [*warnings[:_MAX_WARNINGS], f"… and {len(warnings) - _MAX_WARNINGS} more artifact warnings"]
