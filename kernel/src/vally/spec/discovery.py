"""Finding eval files: below the roots of a project, by suite, and by the words of a command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vally.model.evalspec import Diagnostic, Project, Suite
from vally.spec import paths
from vally.spec.codes import DIAGNOSTIC_CODES
from vally.spec.diagnostics import escape, order
from vally.spec.skills import SKIPPED_DIRECTORIES
from vally.text.globs import InvalidGlob, compile_glob, expand_glob

MAX_FILES = 10_000
_COMMAND_LINE_NAMES = ("*.eval.yaml", "*.eval.yml")
Found = tuple[list[Path], list[Diagnostic]]


@dataclass(slots=True)
class _Search:
    """One search: `roots` are the directories that shown paths start from."""

    project: Project
    base: Path
    names: tuple[str, ...]
    found: dict[Path, None] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def report(self, code: str, pointer: str | None, **values: object) -> None:
        """Add a diagnostic at a value of the project file, or without a position."""
        entry = DIAGNOSTIC_CODES[code]
        at = self.project.positions.get(pointer) if pointer is not None else None
        self.diagnostics.append(
            Diagnostic(
                code=code,
                level=entry.level,
                message=entry.message(values),
                file=at.file if at else None,
                line=at.line if at else None,
                column=at.column if at else None,
                pointer=pointer,
            )
        )

    def take(self, path: Path) -> int:
        """Take a file, or what a directory holds; returns how many files that are."""
        if paths.is_dir(path):
            matches = list(_below(path, self.names))
            self.found.update(dict.fromkeys(matches))
            return len(matches)
        if paths.is_file(path):
            self.found[path] = None
            return 1
        return 0

    def expand(self, pattern: str, pointer: str | None) -> int | None:
        """Take what a glob matches; None after a diagnostic about the glob."""
        try:
            matches = expand_glob(self.base, pattern, dotfiles=False)
        except InvalidGlob as error:
            # A pattern of the project file was reported with the file.
            if pointer is None:
                self.report("invalid-glob", pointer, pattern=pattern, reason=error.reason)
            return None
        # A wildcard stands for no directory that a search skips; one that is written is meant.
        last = pattern.rstrip("/").rpartition("/")[2]
        found = [paths.absolute(self.base, match) for match in matches]
        return sum(self.take(path) for path in found if path.name == last or path.name not in SKIPPED_DIRECTORIES)

    def result(self) -> list[Path]:
        """What was found, by POSIX path."""
        ordered = sorted(self.found, key=lambda path: path.as_posix())
        if len(ordered) > MAX_FILES:
            self.report("too-many-evals", None, count=len(ordered), limit=MAX_FILES)
        return ordered[:MAX_FILES]


def discover_evals(project: Project) -> Found:
    """The evals below `paths.evals`; a written entry that does not exist is an error."""
    search = _Search(project, project.root, project.eval_filenames)
    written = "/paths/evals" in project.positions
    for index, entry in enumerate(project.evals):
        pointer = _item_pointer(project, "/paths/evals", index)
        if paths.has_magic(entry):
            if search.expand(entry, pointer) == 0:
                search.report("pattern-matched-nothing", pointer, pattern=entry)
        elif not paths.exists(path := paths.absolute(project.root, entry)):
            if written:
                search.report("discovery-path-not-found", pointer, file=entry)
        else:
            search.take(path)
    return search.result(), search.diagnostics


def suite_files(project: Project, suite: Suite, *, lint: bool = False) -> Found:
    """The evals of a suite: its own, else the discovered ones. A suite without any is an error, a warning in lint."""
    pointer = f"/suites/{escape(suite.name)}"
    if suite.evals is None:
        found, diagnostics = discover_evals(project)
        search = _Search(project, project.root, project.eval_filenames, diagnostics=diagnostics)
    else:
        search = _Search(project, project.root, project.eval_filenames)
        for index, entry in enumerate(suite.evals):
            at = _item_pointer(project, f"{pointer}/evals", index)
            taken = (
                search.expand(entry, at) if paths.has_magic(entry) else search.take(paths.absolute(project.root, entry))
            )
            if taken == 0:
                search.report("pattern-matched-nothing", at, pattern=entry)
        found = search.result()
    if not found:
        search.report("suite-matched-nothing", pointer, name=suite.name)
        if lint:
            search.diagnostics[-1] = replace(search.diagnostics[-1], level="warning")
    return found, search.diagnostics


def expand_spec_words(words: Sequence[str], cwd: Path, project: Project) -> Found:
    """The specs that `-e` names, in order: files as they are, directories searched, globs expanded.

    A directory or glob without a match and a missing file are errors; a file named twice is taken once, with a warning.
    """
    collected: dict[Path, None] = {}
    diagnostics: list[Diagnostic] = []
    for word in words:
        search = _Search(project, cwd, (*project.eval_filenames, *_COMMAND_LINE_NAMES))
        path = paths.absolute(cwd, word)
        if paths.exists(path) or not paths.has_magic(word):
            count: int | None = search.take(path)
        else:
            count = search.expand(word, None)
        if count == 0:
            search.report("file-not-found", None, file=word, reason=_missing(path, word))
        for found in search.result():
            if found in collected:
                search.report("spec-named-twice", None, file=paths.relative_display(found, project.root, cwd))
            collected[found] = None
        diagnostics += search.diagnostics
    return list(collected), list(order(diagnostics))


def _missing(path: Path, word: str) -> str:
    if paths.is_dir(path):
        return "it holds no eval spec"
    if paths.exists(path):
        return "it is neither a file nor a directory"
    return "it matches no eval spec" if paths.has_magic(word) else "no such file or directory"


def _below(root: Path, names: Iterable[str]) -> Iterator[Path]:
    """Files below a directory whose base name matches; other tools' directories and run directories are skipped."""
    globs = []
    for name in names:
        try:
            globs.append(compile_glob(name, dotfiles=True))
        except InvalidGlob:
            continue
    for directory, inside, files in os.walk(root):
        if "results.jsonl" in files:
            inside.clear()
            continue
        inside[:] = sorted(name for name in inside if name not in SKIPPED_DIRECTORIES)
        for name in files:
            if any(glob.match(name, is_dir=False) for glob in globs):
                yield Path(directory) / name


def _item_pointer(project: Project, pointer: str, index: int) -> str:
    """The pointer of an item, also when a single text stands for the list."""
    item = f"{pointer}/{index}"
    return item if item in project.positions else pointer
