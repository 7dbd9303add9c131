"""A unified diff by files, each line with what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vally_reporter_html.text import name

MAX_CHARACTERS = 60_000
MAX_LINES = 1_500
_META = ("index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode", "similarity", "rename", "Binary")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line; `kind` is `add`, `del`, `hunk`, `meta` or `same`."""

    kind: str
    text: str


@dataclass(slots=True)
class DiffFile:
    """The changes of one file."""

    name: str
    lines: list[DiffLine] = field(default_factory=list)

    @property
    def added(self) -> int:
        """Number of lines that were added, as far as they are shown."""
        return sum(line.kind == "add" for line in self.lines)

    @property
    def removed(self) -> int:
        """Number of lines that were removed, as far as they are shown."""
        return sum(line.kind == "del" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Diff:
    """The files of a diff, and how many lines are left out."""

    files: tuple[DiffFile, ...]
    omitted: int


def parse_diff(text: str) -> Diff:
    """Split a diff; `text` has no control characters any more."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    files: list[DiffFile] = []
    shown = used = 0
    for line, kind in _kinds(lines):
        if shown >= MAX_LINES or used > MAX_CHARACTERS:
            break
        if kind == "file" or not files:
            files.append(DiffFile(_file_name(line)))
        if kind != "file":
            files[-1].lines.append(DiffLine(kind, line if len(line) <= 2_000 else f"{line[:2_000]}…"))
        shown += 1
        used += min(len(line), 2_000)
    return Diff(tuple(files), len(lines) - shown)


def _kinds(lines: list[str]) -> Iterator[tuple[str, str]]:
    in_hunk = False
    for line in lines:
        if line.startswith("diff --git "):
            in_hunk = False
            yield line, "file"
        elif line.startswith("@@"):
            in_hunk = True
            yield line, "hunk"
        elif not in_hunk and line.startswith(_META):
            yield line, "meta"
        else:
            yield line, {"+": "add", "-": "del", "\\": "meta"}.get(line[:1], "same")


def _file_name(line: str) -> str:
    if not line.startswith("diff --git "):
        return "changes"
    _, separator, after = line.rpartition(" b/")
    return name(after if separator else line.removeprefix("diff --git "))
