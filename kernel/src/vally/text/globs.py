"""Globs over paths with `/` separators, in two dialects that differ only in names starting with a dot and in skips.

Project globs (`dotfiles=False`): a name starting with a dot needs a segment that starts with a literal dot, and
wildcards enter neither `.git` nor `node_modules`. Workspace globs (`dotfiles=True`): dots are ordinary, and wildcards
do not enter `.git` unless a segment says so literally. `**` as a whole segment is zero or more directories and does
not enter symbolic links. Matching is case-sensitive on every platform.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vally.text.glob_segments import InvalidGlob, Segment, parse_segment, split_segments

__all__ = ["Glob", "InvalidGlob", "compile_glob", "escape_glob", "expand_glob", "leaves_root"]

MAX_ALTERNATIVES = 1000
# No path is longer on the systems that we know.
MAX_LENGTH = 4096
_ANY_DEPTH = Segment((), None)
_DRIVE = re.compile(r"[A-Za-z]:/")
_OUTSIDE = re.compile(r"/|\\\\|[A-Za-z]:[/\\]")
_MAGIC = re.compile(r"[\\*?\[\]{}()!@+|]")

State = tuple[int, int]
"""Number of an alternative and of its next segment."""
NO_STATES: frozenset[State] = frozenset()


@dataclass(frozen=True, slots=True)
class Alternative:
    """One result of brace expansion."""

    segments: tuple[Segment, ...]
    directory: bool


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob; `anchor` is the root of an absolute pattern, else empty."""

    pattern: str
    alternatives: tuple[Alternative, ...]
    dotfiles: bool
    skipped: frozenset[str]
    anchor: str = ""

    def match(self, path: str, is_dir: bool) -> bool:
        """Whether a path relative to the root matches, symbolic links left aside."""
        *parents, name = path.split("/")
        states = self.start()
        for parent in parents:
            states = self.step(states, parent, enter=True)
        return self.accepts(self.step(states, name), is_dir)

    def start(self) -> frozenset[State]:
        """The states before the first name."""
        return self._closed({(number, 0) for number in range(len(self.alternatives))})

    def step(self, states: frozenset[State], name: str, *, enter: bool = False, link: bool = False) -> frozenset[State]:
        """The states after one more name; with `enter` only those from which a directory of that name may be read."""
        reached: set[State] = set()
        for number, index in states:
            segments = self.alternatives[number].segments
            if index < len(segments) and self._admits(segments[index], name, enter, link):
                reached.add((number, index if segments[index] is _ANY_DEPTH else index + 1))
        if not reached:
            return NO_STATES
        if enter:
            return frozenset(state for state in self._closed(reached) if self._unfinished(state))
        return self._closed(reached)

    def _admits(self, segment: Segment, name: str, enter: bool, link: bool) -> bool:
        if segment.literal is not None:
            return name == segment.literal
        if name.startswith(".") and not self.dotfiles and not segment.dotted:
            return False
        if segment is _ANY_DEPTH:
            return enter and not link and name not in self.skipped
        if enter and name in self.skipped:
            return False
        return segment.matches(name)

    def _closed(self, states: set[State]) -> frozenset[State]:
        """Add what follows when `**` stands for no directory."""
        pending = list(states)
        while pending:
            number, index = pending.pop()
            segments = self.alternatives[number].segments
            if index < len(segments) and segments[index] is _ANY_DEPTH and (number, index + 1) not in states:
                states.add((number, index + 1))
                pending.append((number, index + 1))
        return frozenset(states)

    def _unfinished(self, state: State) -> bool:
        return state[1] < len(self.alternatives[state[0]].segments)

    def accepts(self, states: frozenset[State], is_dir: bool) -> bool:
        """Whether a path that led to these states matches."""
        return any(
            not self._unfinished(state) and (is_dir or not self.alternatives[state[0]].directory) for state in states
        )

    def next_literals(self, states: frozenset[State]) -> set[str] | None:
        """The only names that can come next, or None when a directory must be listed to know."""
        names = set()
        for number, index in states:
            segments = self.alternatives[number].segments
            if index < len(segments):
                if segments[index].literal is None:
                    return None
                names.add(segments[index].literal or "")
        return names


@lru_cache(maxsize=256)
def compile_glob(pattern: str, *, dotfiles: bool) -> Glob:
    """Compile a glob; raises InvalidGlob."""
    if not pattern:
        raise InvalidGlob(pattern, "it is empty")
    if len(pattern) > MAX_LENGTH:
        raise InvalidGlob(pattern, f"it is longer than {MAX_LENGTH} characters")
    anchor = _anchor(pattern)
    alternatives = tuple(
        alternative
        for text in _brace_expanded(pattern[len(anchor) :], pattern)
        for alternative in _alternatives(text, pattern)
    )
    literals = {segment.literal for alternative in alternatives for segment in alternative.segments}
    skipped = {".git"} - literals if dotfiles else {".git", "node_modules"}
    return Glob(pattern, alternatives, dotfiles, frozenset(skipped), anchor)


def _anchor(pattern: str) -> str:
    if pattern.startswith("/"):
        return "/"
    drive = _DRIVE.match(pattern) if os.name == "nt" else None
    return drive[0] if drive else ""


def _brace_expanded(text: str, pattern: str) -> list[str]:
    if "{" not in text:
        return [text]
    import bracex

    try:
        return list(dict.fromkeys(bracex.expand(text, keep_escapes=True, limit=MAX_ALTERNATIVES)))
    except bracex.ExpansionLimitException:
        raise InvalidGlob(pattern, f"its braces stand for more than {MAX_ALTERNATIVES} patterns") from None
    except RecursionError:
        raise InvalidGlob(pattern, "its braces lie too deep in each other") from None


def _alternatives(text: str, pattern: str) -> Iterator[Alternative]:
    segments = [_ANY_DEPTH if segment == "**" else parse_segment(segment, pattern) for segment in split_segments(text)]
    directory = text.endswith("/")
    if segments and segments[-1] is _ANY_DEPTH and not directory:
        # `a/**` is the directory itself (no directory below it) and everything below.
        yield Alternative(tuple(segments[:-1]), True)
        directory, segments = False, [*segments, parse_segment("*", pattern)]
    yield Alternative(tuple(segments), directory)


def escape_glob(text: str) -> str:
    """The glob that matches only `text` itself."""
    return _MAGIC.sub(r"\\\g<0>", text)


def leaves_root(pattern: str) -> bool:
    """Whether a path or glob is empty, absolute (in the style of any platform) or has a `..` segment."""
    if not pattern or _OUTSIDE.match(pattern) or ".." in pattern.split("/"):
        return True
    if not _MAGIC.search(pattern):
        return False
    try:
        alternatives = compile_glob(pattern, dotfiles=True).alternatives
    except InvalidGlob:
        return False
    return any(segment.literal == ".." for alternative in alternatives for segment in alternative.segments)


def expand_glob(root: str | Path, pattern: str, *, dotfiles: bool) -> list[str]:
    """Find what matches below `root`: paths relative to it (absolute for an absolute pattern), by code point.

    The root itself never matches. Directories that cannot be read count as empty. Raises InvalidGlob.
    """
    glob = compile_glob(pattern, dotfiles=dotfiles)
    return sorted(set(_walk(os.fspath(root), glob)))


def _walk(root: str, glob: Glob) -> Iterator[str]:
    base = glob.anchor or root
    pending = [(glob.anchor, base, glob.start())]
    while pending:
        prefix, directory, states = pending.pop()
        for entry in _entries(directory, glob.next_literals(states)):
            if glob.accepts(glob.step(states, entry.name), entry.is_dir):
                yield prefix + entry.name
            if entry.is_dir and (inside := glob.step(states, entry.name, enter=True, link=entry.is_link)):
                pending.append((f"{prefix}{entry.name}/", os.path.join(directory, entry.name), inside))  # noqa: PTH118


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    is_dir: bool
    is_link: bool


def _entries(directory: str, names: set[str] | None) -> Iterator[_Entry]:
    if names is None or (sys.platform in ("win32", "darwin") and names - {".."}):
        # File systems there may find a name in another case, which only a listing shows.
        yield from _listed(directory)
        names = {".."} & (names or set())
    for name in names:
        if (entry := _named(directory, name)) is not None:
            yield entry


def _listed(directory: str) -> Iterator[_Entry]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                yield _Entry(entry.name, _is_dir(entry), entry.is_symlink())
    except OSError:
        return


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A loop of symbolic links.
        return False


def _named(directory: str, name: str) -> _Entry | None:
    path = os.path.join(directory, name)  # noqa: PTH118  # a Path would swallow `..` after a symbolic link's name
    try:
        is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        return _Entry(name, os.path.isdir(path), is_link)  # noqa: PTH112
    except (OSError, ValueError):
        return None
