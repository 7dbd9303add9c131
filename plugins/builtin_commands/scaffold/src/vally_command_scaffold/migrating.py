"""One invocation of `vally migrate`: which files, what is printed, what is written."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vally import (
    PluginHost,
    VallyError,
    atomic_write,
    discover_evals,
    find_project,
    print_diagnostics,
    print_error,
    print_line,
    read_project,
)
from vally_command_scaffold.documents import PROJECT_NAMES, Document, ProjectFile, Shared, document_at
from vally_command_scaffold.files import shown
from vally_command_scaffold.migration import Migrated, migrate
from vally_command_scaffold.project_paths import rebase_paths, same_plans, with_project

if TYPE_CHECKING:
    from vally import CliContext

CURRENT_NAME, OLD_NAME = PROJECT_NAMES
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"})


class Migrating:
    """Carries an invocation from its paths to its exit code; plugins of projects are never loaded."""

    def __init__(self, context: CliContext, *, check: bool, diff: bool) -> None:
        self._context = context
        self._check = check
        self._diff = diff
        self._host: PluginHost = context.bare_host()
        self._changed = 0
        self._failed = False

    def run(self, words: Sequence[str]) -> int:
        """Migrate everything; returns the exit code. Raises VallyError for a path that is nothing of vally's."""
        documents = self._documents(words)
        for document in documents:
            try:
                self._one(document, documents)
            except VallyError as error:
                print_error(error)
                self._failed = True
        self._say_total(len(documents))
        return 1 if self._failed or (self._check and self._changed) else 0

    def _documents(self, words: Sequence[str]) -> list[Document]:
        found: dict[Path, Document] = {}
        for word in words:
            path = Path(os.path.normpath(self._context.cwd / word))
            if not path.exists():
                raise VallyError("no such file or directory", where=word)
            for file in _files_below(path) if path.is_dir() else [path]:
                document = self._document(file)
                if document is not None:
                    found.setdefault(file, document)
                elif file == path:
                    raise VallyError("neither an eval spec nor an experiment nor a project file", where=word)
        return list(found.values())

    def _document(self, path: Path) -> Document | None:
        context = self._context
        try:
            if path.name in PROJECT_NAMES:
                project = read_project(path)
            else:
                project = find_project(path.parent, context.cwd, context.config_path, context.no_config)
            return document_at(path, Shared(project, self._host, context.environ))
        except OSError as error:
            raise VallyError(f"cannot read the file: {error.strerror}", where=shown(context, path)) from None

    def _one(self, document: Document, documents: Sequence[Document]) -> None:
        content = document.path.read_bytes()
        migrated = migrate(document, content, list(self._host.records("grader")))
        if isinstance(document, ProjectFile):
            migrated = self._with_paths(document, migrated, documents)
        print_diagnostics(migrated.errors or migrated.left)
        self._failed = self._failed or bool(migrated.errors)
        target = _target(document)
        if not migrated.changed and target == document.path:
            return
        self._changed += 1
        if self._diff:
            self._print_diff(document.path, target, migrated)
        elif not self._check:
            self._write(document.path, target, migrated)
        self._say_change(document.path, target, migrated)

    def _with_paths(self, document: ProjectFile, migrated: Migrated, documents: Sequence[Document]) -> Migrated:
        """The same with paths of environments that only specs explain."""
        shared = with_project(document.shared, migrated.after)
        discovered, _ = discover_evals(shared.project)
        given = [other.path for other in documents if not isinstance(other, ProjectFile)]
        specs = [path for path in dict.fromkeys([*discovered, *given]) if self._uses(path, document.path)]
        text, count, left = rebase_paths(migrated.after.decode("utf-8-sig"), shared, specs)
        mark = migrated.after[: len(migrated.after) - len(migrated.after.decode("utf-8-sig").encode())]
        after = mark + text.encode()
        if count and not same_plans(shared, with_project(shared, after), specs):
            return migrated
        return Migrated(migrated.before, after, migrated.settled + count, (*migrated.left, *left), migrated.errors)

    def _uses(self, path: Path, project: Path) -> bool:
        context = self._context
        return find_project(path.parent, context.cwd, context.config_path, context.no_config).path == project

    def _write(self, path: Path, target: Path, migrated: Migrated) -> None:
        try:
            # Through symbolic links, so that they stay.
            file = path.resolve()
            if migrated.changed:
                atomic_write(file, migrated.after, mode=stat.S_IMODE(file.stat().st_mode))
            if target != path:
                path.rename(target)
        except OSError as error:
            where = shown(self._context, path)
            raise VallyError(f"cannot write the file: {error.strerror}", where=where) from None

    def _print_diff(self, path: Path, target: Path, migrated: Migrated) -> None:
        before, after = (data.decode("utf-8-sig").splitlines() for data in (migrated.before, migrated.after))
        names = shown(self._context, path), shown(self._context, target)
        if names[0] != names[1]:
            print_line(f"rename from {names[0]}")
            print_line(f"rename to {names[1]}")
        for line in difflib.unified_diff(before, after, f"a/{names[0]}", f"b/{names[1]}", lineterm=""):
            print_line(line)

    def _say_change(self, path: Path, target: Path, migrated: Migrated) -> None:
        if self._diff or self._context.display.quiet:
            return
        verb = "Would migrate" if self._check else "Migrated"
        name = shown(self._context, path)
        if migrated.changed:
            count = "1 change" if migrated.settled == 1 else f"{migrated.settled} changes"
            print_line(f"{verb} {name} ({count})")
        if target != path:
            print_line(f"{'Would rename' if self._check else 'Renamed'} {name} to {target.name}")

    def _say_total(self, total: int) -> None:
        if self._diff or self._context.display.quiet:
            return
        of = "1 file" if total == 1 else f"{total} files"
        what = "would change" if self._check else "changed"
        print_line(f"{self._changed} of {of} {what}")


def _files_below(root: Path) -> Iterator[Path]:
    """YAML files below a directory; other tools' directories and run directories are skipped."""
    for directory, inside, files in os.walk(root):
        if "results.jsonl" in files:
            inside.clear()
            continue
        inside[:] = sorted(name for name in inside if name not in _SKIPPED)
        yield from (Path(directory) / name for name in sorted(files) if name.endswith((".yaml", ".yml")))


def _target(document: Document) -> Path:
    """Where a file belongs: a project file of the old name has a new one, unless that is taken."""
    path = document.path
    renamed = path.with_name(CURRENT_NAME)
    return renamed if path.name == OLD_NAME and not renamed.exists() else path
