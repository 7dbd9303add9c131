"""Directories that options name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vally.errors import VallyError

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.model.evalspec import Project


def directory(cwd: Path, word: str | None, option: str) -> Path | None:
    """The directory an option names, None without one; raises `VallyError` when it is none."""
    if word is None:
        return None
    return existing_directory(cwd, word, option)


def existing_directory(cwd: Path, word: str, where: str) -> Path:
    """The directory a word names; raises `VallyError` when it is none."""
    path = (cwd / word).resolve()
    if not path.is_dir():
        why = "is not a directory" if os.path.lexists(path) else "does not exist"
        raise VallyError(f"'{word}' {why}", where=where)
    if not os.access(path, os.R_OK | os.X_OK):
        raise VallyError(f"'{word}' cannot be read: permission denied", where=where)
    return path


def workspace_directory(cwd: Path, word: str | None) -> Path | None:
    """Where `--workspace` keeps workspaces, made when needed; raises `VallyError` when something else is there."""
    if not word:
        return None
    path = (cwd / word).absolute()
    if os.path.lexists(path):
        existing_directory(cwd, word, "--workspace")
    return path


def skill_dirs(context: CliContext, word: str | None) -> tuple[Path, ...] | None:
    """The skills below the directory of `--skill-dir`; None without the option."""
    root = directory(context.cwd, word, "--skill-dir")
    if root is None:
        return None
    from vally.spec import find_skills

    return tuple(find_skills(root))


def results_directory(context: CliContext, project: Project, named: str | None, default: str) -> Path:
    """The parent of run directories: `--output-dir`, else `paths.results` of the project, else `default`."""
    if named:
        return context.cwd / named
    if project.results:
        return project.root / project.results
    return context.cwd / default
