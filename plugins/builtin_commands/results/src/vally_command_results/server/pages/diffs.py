"""A unified diff as rows with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from vally_command_results.query.trajectories import changed_files, split_files
from vally_command_results.server.pages.highlight import Budget, highlighted
from vally_command_results.server.pages.text import visible

FOLD_LINES = 2_000
"""Files with more lines are folded, as are those behind the limit of a page."""
PAGE_LINES = 6_000
LINE_LENGTH = 2_000
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `kind` is `add`, `del`, `same`, `hunk` or `note`. `cut` counts characters left out."""

    kind: str
    old: int | None
    new: int | None
    text: str | Markup
    cut: int = 0


@dataclass(slots=True)
class FileDiff:
    """The diff of one file; lines are empty when it is folded. `facts` are path, change and counts."""

    number: int
    facts: dict[str, Any]
    count: int
    lines: list[Line] = field(default_factory=list)
    is_folded: bool = False


def file_diffs(text: str, *, ignore_whitespace: bool = False) -> list[FileDiff]:
    """All files of a diff; as many lines as a page bears, the other files folded."""
    found: list[FileDiff] = []
    room, budget = PAGE_LINES, Budget()
    for number, (facts, part) in enumerate(zip(changed_files(text), split_files(text), strict=True)):
        count = part.count("\n")
        folded = count > FOLD_LINES or count > room
        entry = FileDiff(number, facts, count, is_folded=folded)
        if not folded:
            entry.lines = _lines(part, facts["path"], budget, ignore_whitespace=ignore_whitespace)
            room -= count
        found.append(entry)
    return found


def one_file(text: str, number: int, start: int, *, ignore_whitespace: bool = False) -> FileDiff | None:
    """One file of a diff from a line on."""
    parts = split_files(text)
    if number >= len(parts):
        return None
    facts = changed_files(parts[number])[0]
    lines = _lines(parts[number], facts["path"], Budget(), ignore_whitespace=ignore_whitespace)
    return FileDiff(number, facts, len(lines), lines[start : start + PAGE_LINES])


def _lines(part: str, path: str, budget: Budget, *, ignore_whitespace: bool) -> list[Line]:
    lines = list(_numbered(part))
    shown = highlighted(path, [(line.kind, str(line.text)) for line in lines], budget)
    painted = [line if text is None else replace(line, text=text) for line, text in zip(lines, shown, strict=True)]
    return list(_without_whitespace(painted, lines)) if ignore_whitespace else painted


def _numbered(part: str) -> Iterator[Line]:
    old = new = 0
    in_hunk = False
    # Only a newline ends a line here; other signs that some take for line ends belong to the text.
    for raw in part.removesuffix("\n").split("\n"):
        match = _HUNK.match(raw)
        if match is not None:
            in_hunk = True
            old, new = int(match[1]), int(match[2])
            yield Line("hunk", None, None, visible(raw[:LINE_LENGTH]))
        elif not in_hunk:
            yield from _header(raw)
        elif raw.startswith("+"):
            yield _line("add", None, new, raw[1:])
            new += 1
        elif raw.startswith("-"):
            yield _line("del", old, None, raw[1:])
            old += 1
        elif raw.startswith("\\"):
            yield Line("note", None, None, visible(raw[2:LINE_LENGTH]))
        else:
            yield _line("same", old, new, raw[1:])
            old, new = old + 1, new + 1


def _header(raw: str) -> Iterator[Line]:
    """What a header says beyond the names of the file and its state, which stand above it."""
    if raw.startswith(("old mode", "new mode", "similarity", "Binary files", "GIT binary patch")):
        yield Line("note", None, None, visible(raw[:LINE_LENGTH]))


def _line(kind: str, old: int | None, new: int | None, text: str) -> Line:
    return Line(kind, old, new, visible(text[:LINE_LENGTH]), max(0, len(text) - LINE_LENGTH))


def _without_whitespace(painted: list[Line], plain: list[Line]) -> Iterator[Line]:
    """Removed and added lines that differ in white space only become lines that did not change."""
    place = 0
    while place < len(plain):
        removed = _stretch(plain, place, "del")
        added = _stretch(plain, place + removed, "add")
        if removed == added and removed and _same_but_space(plain, place, removed):
            for offset in range(removed):
                before, after = plain[place + offset], painted[place + removed + offset]
                yield Line("same", before.old, after.new, after.text, after.cut)
            place += removed + added
            continue
        step = max(1, removed + added)
        yield from painted[place : place + step]
        place += step


def _stretch(lines: list[Line], start: int, kind: str) -> int:
    end = start
    while end < len(lines) and lines[end].kind == kind:
        end += 1
    return end - start


def _same_but_space(lines: list[Line], start: int, count: int) -> bool:
    return all(
        "".join(str(lines[start + place].text).split()) == "".join(str(lines[start + count + place].text).split())
        for place in range(count)
    )
