"""Choosing files of a workspace by globs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from vally import ExportedFiles, Selection, compile_glob
from vally_backend_local.artifacts import copy_artifacts
from vally_backend_local.copying import walk


class PathFilter:
    """Matches paths relative to the workspace against globs; a pattern also stands for the path it spells.

    Raises InvalidGlob.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._names = frozenset(pattern.removeprefix("./") for pattern in patterns)
        self._globs = [compile_glob(name, dotfiles=True) for name in sorted(self._names)]

    @property
    def enters_git(self) -> bool:
        """Whether a pattern names a `.git` directory."""
        return any(".git" not in glob.skipped for glob in self._globs)

    def matches(self, path: str) -> bool:
        """Whether any pattern matches the path of a file."""
        return path in self._names or any(glob.match(path, False) for glob in self._globs)


def export_files(workspace: Path, selection: Selection, target: Path) -> ExportedFiles:
    """Copy the selected files of a workspace. Raises InvalidGlob, and OSError when `target` cannot be written."""
    wanted, refused = PathFilter(selection.include), PathFilter(selection.exclude)
    warnings = copy_artifacts(
        workspace,
        target,
        include=(lambda _: True) if selection.whole else wanted.matches,
        exclude=refused.matches,
        enter_git=selection.whole or wanted.enters_git,
        max_files=sys.maxsize,
        max_bytes=sys.maxsize,
    )
    files = [Path(entry.path).relative_to(target).as_posix() for entry in walk(target) if entry.is_file()]
    return ExportedFiles(files=tuple(sorted(files)), warnings=tuple(warnings))
