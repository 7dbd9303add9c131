"""One segment of a glob: parsing and matching a single file name."""

from __future__ import annotations

from dataclasses import dataclass

from vally.errors import VallyError

GROUP_MARKS = "@?*+!"
MAX_GROUPS = 32


class InvalidGlob(VallyError, ValueError):
    """A pattern is not a glob; the text says why."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"'{pattern}' is not a valid glob: {reason}")
        self.pattern = pattern
        self.reason = reason


class _Malformed(Exception):
    """What is wrong with a segment."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class AnyCharacter:
    """`?`"""


@dataclass(frozen=True, slots=True)
class AnyText:
    """`*`"""


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """`[...]` as inclusive ranges."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def contains(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True, slots=True)
class Group:
    """`@(a|b)`, `?(…)`, `*(…)`, `+(…)`, `!(…)`; the mark is the first character."""

    mark: str
    alternatives: tuple[tuple[Part, ...], ...]


Part = Literal | AnyCharacter | AnyText | CharacterSet | Group


@dataclass(frozen=True, slots=True)
class Segment:
    """A parsed segment: `literal` is its text when it has no magic, `prefix` and `suffix` its literal ends."""

    parts: tuple[Part, ...]
    literal: str | None
    prefix: str = ""
    suffix: str = ""

    @property
    def dotted(self) -> bool:
        """Whether it starts with a literal dot."""
        return self.prefix.startswith(".")

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        if self.literal is not None:
            return name == self.literal
        # In a large tree nearly every name is decided here.
        if not (name.startswith(self.prefix) and name.endswith(self.suffix)):
            return False
        return len(name) in _ends(self.parts, name, {0})


def _ends(parts: tuple[Part, ...], name: str, starts: set[int]) -> set[int]:
    """Every position at which the parts can end when they begin at one of `starts`.

    Sets of positions instead of backtracking (or a translation to a regular expression, which has no exact form for
    `!(…)`): polynomial for any pattern.
    """
    for part in parts:
        starts = _step(part, name, starts)
        if not starts:
            break
    return starts


def _step(part: Part, name: str, starts: set[int]) -> set[int]:
    if isinstance(part, Literal):
        return {start + len(part.text) for start in starts if name.startswith(part.text, start)}
    if isinstance(part, AnyText):
        return set(range(min(starts), len(name) + 1))
    if isinstance(part, AnyCharacter):
        return {start + 1 for start in starts if start < len(name)}
    if isinstance(part, CharacterSet):
        return {start + 1 for start in starts if start < len(name) and part.contains(name[start])}
    return _group_step(part, name, starts)


def _group_step(group: Group, name: str, starts: set[int]) -> set[int]:
    if group.mark == "!":
        return {end for start in starts for end in set(range(start, len(name) + 1)) - _once(group, name, {start})}
    if group.mark == "@":
        return _once(group, name, starts)
    if group.mark == "?":
        return starts | _once(group, name, starts)
    reached = set() if group.mark == "+" else set(starts)
    fresh = starts
    while fresh:
        fresh = _once(group, name, fresh) - reached
        reached |= fresh
    return reached


def _once(group: Group, name: str, starts: set[int]) -> set[int]:
    return {end for parts in group.alternatives for end in _ends(parts, name, starts)}


def split_segments(pattern: str) -> list[str]:
    """Split at `/` outside of `\\` escapes; empty and `.` segments drop out."""
    segments, current, position = [], "", 0
    while position < len(pattern):
        if pattern[position] == "\\" and pattern[position + 1 : position + 2] not in ("", "/"):
            current += pattern[position : position + 2]
            position += 2
            continue
        if pattern[position] == "/":
            segments.append(current)
            current = ""
        else:
            current += pattern[position]
        position += 1
    return [segment for segment in [*segments, current] if segment not in ("", ".")]


def parse_segment(text: str, pattern: str) -> Segment:
    """Parse one segment of `pattern`; raises InvalidGlob."""
    parser = _Parser(text)
    try:
        parts = parser.sequence(closing="")
    except _Malformed as error:
        raise InvalidGlob(pattern, str(error)) from None
    literal = None
    if all(isinstance(part, Literal) for part in parts):
        literal = "".join(part.text for part in parts if isinstance(part, Literal))
    return Segment(parts, literal, _literal_text(parts[:1]), _literal_text(parts[-1:]))


def _literal_text(parts: tuple[Part, ...]) -> str:
    return parts[0].text if parts and isinstance(parts[0], Literal) else ""


class _Parser:
    """Recursive descent over one segment."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def sequence(self, closing: str) -> tuple[Part, ...]:
        """Parse until one of the `closing` characters, which is not consumed, or the end."""
        parts: list[Part] = []
        while self.position < len(self.text) and self.text[self.position] not in closing:
            part = self.part()
            if isinstance(part, Literal) and parts and isinstance(parts[-1], Literal):
                parts[-1] = Literal(parts[-1].text + part.text)
            elif not (isinstance(part, AnyText) and parts and isinstance(parts[-1], AnyText)):
                parts.append(part)
        return tuple(parts)

    def part(self) -> Part:
        character = self.take()
        if character in GROUP_MARKS and self.peek() == "(":
            return self.group(character)
        if character == "*":
            return AnyText()
        if character == "?":
            return AnyCharacter()
        if character == "[":
            return self.character_set()
        return Literal(self.escaped() if character == "\\" else character)

    def group(self, mark: str) -> Group:
        self.take()
        self.depth += 1
        if self.depth > MAX_GROUPS:
            raise _Malformed(f"more than {MAX_GROUPS} groups lie in each other")
        alternatives = [self.sequence(closing="|)")]
        while self.peek() == "|":
            self.take()
            alternatives.append(self.sequence(closing="|)"))
        if self.peek() != ")":
            raise _Malformed(f"no ')' for '{mark}(' within the path segment")
        self.take()
        self.depth -= 1
        return Group(mark, tuple(alternatives))

    def character_set(self) -> CharacterSet:
        negated = self.peek() in ("!", "^")
        if negated:
            self.take()
        ranges: list[tuple[str, str]] = []
        while self.peek() != "]" or not ranges:
            ranges.append(self.range())
        self.take()
        return CharacterSet(tuple(ranges), negated)

    def range(self) -> tuple[str, str]:
        low = self.set_character()
        if self.peek() != "-" or self.text[self.position + 1 : self.position + 2] in ("", "]"):
            return low, low
        self.take()
        high = self.set_character()
        if high < low:
            raise _Malformed(f"the range '{low}-{high}' is empty")
        return low, high

    def set_character(self) -> str:
        if not self.peek():
            raise _Malformed("no ']' for '[' within the path segment")
        character = self.take()
        return self.escaped() if character == "\\" else character

    def escaped(self) -> str:
        if not self.peek():
            raise _Malformed("nothing after the last '\\'")
        return self.take()

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self) -> str:
        self.position += 1
        return self.text[self.position - 1]
