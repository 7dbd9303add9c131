"""The tools `glob` and `grep`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vally import (
    InvalidGlob,
    InvalidRegex,
    RegexError,
    RegexTimeout,
    compile_glob,
    compile_regex,
    expand_glob,
    leaves_root,
)
from vally_executor_openai_tools.files import lines_of, read_text
from vally_executor_openai_tools.outcome import ToolError
from vally_executor_openai_tools.places import OUTSIDE, Places

MOST_PATHS = 500
MOST_LINES = 200
LONGEST_LINE = 500
LIMIT_S = 30.0
LIMIT_OF_LINE_S = 5.0


def glob(places: Places, pattern: str, path: str = ".") -> str:
    """Paths below a directory that match, relative to it; raises `ToolError`."""
    root = _directory(places, path)
    if leaves_root(pattern):
        raise ToolError(f"{OUTSIDE}: the pattern must be relative to 'path'", "outside-workspace")
    try:
        # Links may lead anywhere.
        found = [match for match in expand_glob(root, pattern, dotfiles=True) if places.contains(root / match)]
    except InvalidGlob as error:
        raise ToolError(f"invalid pattern '{pattern}': {error.reason}", "invalid-arguments") from None
    return _counted([match.encode("utf-8", "replace").decode() for match in found], MOST_PATHS, "paths")


def grep(places: Places, pattern: str, path: str = ".", glob: str | None = None) -> str:
    """Lines that match, as `file:line: text`; raises `ToolError`."""
    place = places.resolve(path)
    found: list[str] = []
    try:
        regex = compile_regex(pattern)
        deadline = time.monotonic() + LIMIT_S
        for file in _files(places, place, path, glob):
            shown = places.shown(file)
            for number, line in enumerate(_lines(file), 1):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ToolError(f"the search took more than {LIMIT_S:g}s; search less", "timeout")
                if regex.search(line, time_limit=min(left, LIMIT_OF_LINE_S)) is not None:
                    found.append(f"{shown}:{number}: {line[:LONGEST_LINE]}")
            # One more than is shown, to know that there are more.
            if len(found) > MOST_LINES:
                break
    except InvalidRegex as error:
        raise ToolError(f"invalid pattern '{pattern}': {error.message}", "invalid-arguments") from None
    except InvalidGlob as error:
        raise ToolError(f"invalid pattern '{glob}': {error.reason}", "invalid-arguments") from None
    except (RegexError, RegexTimeout) as error:
        raise ToolError(str(error), "timeout") from None
    return _counted(found, MOST_LINES, "lines")


def _files(places: Places, place: Path, path: str, pattern: str | None) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    root = _directory(places, path)
    wanted = _filter(pattern)
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            file = Path(directory, name)
            if wanted(file.relative_to(root).as_posix()) and places.contains(file):
                yield file


def _filter(pattern: str | None) -> Callable[[str], bool]:
    """Whether a file is to be searched; a pattern without a slash is one for the name alone."""
    if pattern is None:
        return lambda _: True
    glob, name_only = compile_glob(pattern, dotfiles=True), "/" not in pattern
    return lambda path: glob.match(path.rpartition("/")[2] if name_only else path, False)


def _lines(file: Path) -> list[str]:
    """The lines of a text file; none of what is no text, too large or not readable."""
    try:
        return lines_of(read_text(file, ""))
    except ToolError:
        return []


def _directory(places: Places, path: str) -> Path:
    place = places.resolve(path)
    if not place.is_dir():
        raise ToolError(f"{path} {'is not a directory' if place.exists() else 'does not exist'}", "not-found")
    return place


def _counted(found: list[str], most: int, what: str) -> str:
    if not found:
        return f"no {what} match"
    more = [f"… (more than {most} {what}; be more specific)"] if len(found) > most else []
    return "\n".join([*found[:most], *more])
