"""The tools `view`, `create` and `edit`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vally_executor_openai_tools.outcome import ToolError
from vally_executor_openai_tools.places import Places

LARGEST_FILE = 10 * 2**20
MOST_ENTRIES = 500
_LINE_END = re.compile(r"\r\n|\n|\r")


def view(places: Places, path: str, view_range: list[int] | None = None) -> str:
    """Numbered lines of a file, or the entries of a directory; raises `ToolError`."""
    place = places.resolve(path)
    if place.is_dir():
        return _listing(place)
    lines = lines_of(read_text(place, path))
    first, last = _range(view_range, len(lines))
    width = len(str(last))
    return "\n".join(f"{number:>{width}}\t{lines[number - 1]}" for number in range(first, last + 1))


def create(places: Places, path: str, file_text: str) -> str:
    """Write a new file; raises `ToolError`."""
    place = places.resolve(path)
    if os.path.lexists(place):
        raise ToolError(f"{path} exists already; use edit to change it", "exists")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(_encoded(file_text))
    except OSError as error:
        raise _failed("create", path, error) from None
    return f"Created {path}"


def edit(places: Places, path: str, old_str: str, new_str: str) -> str:
    """Replace the only occurrence of a text; raises `ToolError`."""
    place = places.resolve(path)
    if not old_str:
        raise ToolError("old_str must not be empty", "invalid-arguments")
    before = read_text(place, path)
    found = _occurrences(before, old_str)
    if found != 1:
        reason = "does not occur" if found == 0 else "occurs more than once"
        raise ToolError(f"old_str {reason} in {path}; it must occur exactly once", "no-unique-match")
    try:
        place.write_bytes(_encoded(before.replace(old_str, new_str)))
    except OSError as error:
        raise _failed("change", path, error) from None
    return f"Edited {path}"


def read_text(place: Path, path: str) -> str:
    """A text file with its line ends as they are; raises `ToolError` for anything else."""
    try:
        if not place.exists():
            raise ToolError(f"{path} does not exist", "not-found")
        # Opening a pipe or a device could wait for ever.
        if not place.is_file():
            raise ToolError(f"{path} is not a regular file", "not-a-file")
        if place.stat().st_size > LARGEST_FILE:
            raise ToolError(f"{path} is larger than {LARGEST_FILE >> 20} MiB", "too-large")
        return place.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not a text file in UTF-8", "not-text") from None
    except OSError as error:
        raise _failed("read", path, error) from None


def lines_of(text: str) -> list[str]:
    """The lines of a text; a line end at its end begins no further one."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def _occurrences(text: str, wanted: str) -> int:
    """How often a text occurs, overlapping occurrences included; 2 stands for any larger number."""
    first = text.find(wanted)
    if first < 0:
        return 0
    return 1 if text.find(wanted, first + 1) < 0 else 2


def _listing(directory: Path) -> str:
    try:
        with os.scandir(directory) as entries:
            names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
    except OSError as error:
        raise _failed("list", directory.name, error) from None
    shown = [_printable(name) for name in names[:MOST_ENTRIES]]
    if len(names) > MOST_ENTRIES:
        shown.append(f"… ({len(names) - MOST_ENTRIES} more)")
    return "\n".join(shown) or "(empty directory)"


def _range(view_range: list[int] | None, count: int) -> tuple[int, int]:
    if view_range is None:
        return 1, count
    first, last = view_range
    last = count if last == -1 else min(last, count)
    if not 1 <= first <= max(count, 1) or last < first - 1:
        raise ToolError(f"view_range {view_range} does not fit a file of {count} lines", "invalid-arguments")
    return first, last


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _failed(verb: str, path: str, error: OSError) -> ToolError:
    return ToolError(f"cannot {verb} {path}: {error.strerror or type(error).__name__}")
