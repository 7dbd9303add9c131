"""The project file, and the experiment files below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from vally import Project, VallyError, discover_evals, expand_glob, find_skills, suite_files
from vally_command_lint.findings import FileReport, Finding, from_diagnostic
from vally_command_lint.skill_source import SKILL_FILE, SKIPPED_DIRECTORIES

EXPERIMENT_NAMES = ("experiment.yaml", "*.experiment.yaml", "*.experiments.yaml")


def project_skill_directories(project: Project) -> list[Path]:
    """Skills below `paths.skills`; what is not there has none."""
    found: dict[Path, None] = {}
    for entry in project.skills:
        for path in _places(project.root, entry):
            if path.is_dir():
                found.update(dict.fromkeys(find_skills(path)))
            elif path.name == SKILL_FILE and path.is_file():
                found[path.parent] = None
    return sorted(found, key=lambda path: path.as_posix())


def _places(root: Path, entry: str) -> Iterator[Path]:
    plain = Path(os.path.normpath(root / entry))
    if plain.exists():
        yield plain
        return
    try:
        yield from (Path(os.path.normpath(root / match)) for match in expand_glob(root, entry, dotfiles=False))
    except VallyError:
        # A bad pattern was reported with the file.
        return


def check_project(project: Project, display: Callable[[Path], str]) -> Iterator[FileReport]:
    """The project file: what it says itself, its discovery paths and its suites."""
    if project.path is None:
        return
    name = display(project.path)
    found = dict.fromkeys(project.diagnostics)
    found.update(dict.fromkeys(discover_evals(project)[1]))
    for suite in project.suites.values():
        found.update(dict.fromkeys(suite_files(project, suite, lint=True)[1]))
    findings = [_in_file(from_diagnostic(item), name) for item in found]
    ordered = sorted(findings, key=lambda item: (item.line or 0, item.column or 0, item.code))
    yield FileReport(kind="project", path=name, findings=tuple(ordered))


def _in_file(item: Finding, name: str) -> Finding:
    return item if item.file is not None and item.file != Path(name).name else replace(item, file=name)


def experiment_files(root: Path) -> list[Path]:
    """Experiment files below a directory, by path."""
    found = []
    for base, directories, names in os.walk(root):
        if "results.jsonl" in names:
            directories.clear()
            continue
        directories[:] = [name for name in directories if name not in SKIPPED_DIRECTORIES]
        matching = [name for name in names if any(fnmatchcase(name, pattern) for pattern in EXPERIMENT_NAMES)]
        found += [Path(base) / name for name in matching]
    return sorted(found, key=lambda path: path.as_posix())
