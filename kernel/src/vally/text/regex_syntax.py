"""The structure of an ECMAScript pattern without the `u` and `v` flags, as far as it decides what can match at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP_START = re.compile(r"\((?:\?(?:([:=!])|<([=!])|<[^>]*>|[a-z]*(?:-[a-z]*)?:))?")
_LONG_ESCAPE = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|c[A-Za-z]|k<[^>]*>|[0-9]+|.", re.DOTALL)
MAX_DEPTH = 100


class UnknownSyntax(ValueError):
    """The pattern has something that is not understood here; the engine has the say."""


@dataclass(frozen=True, slots=True)
class Character:
    """Exactly one character; with `impossible` a class that has none."""

    impossible: bool = False


@dataclass(frozen=True, slots=True)
class Assertion:
    """`start`, `end`, or `other` for word boundaries."""

    kind: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A back reference, or an octal escape that looks like one."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look-around."""

    body: Node
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times; `most` is None without a limit."""

    body: Node
    least: int
    most: int | None


Node = Character | Assertion | Reference | Look | Sequence | Choice | Repeat


def parse(source: str) -> Node:
    """The structure of a pattern that the engine accepts. Raises UnknownSyntax."""
    parser = _Parser(source)
    node = parser.choice(0)
    if parser.at < len(source):
        raise UnknownSyntax(source)
    return node


@dataclass(slots=True)
class _Parser:
    source: str
    at: int = 0

    def choice(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise UnknownSyntax(self.source)
        options = [self._sequence(depth)]
        while self._take("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        return Sequence(tuple(self._terms(depth)))

    def _terms(self, depth: int) -> Iterator[Node]:
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            yield self._repeated(self._term(depth))

    def _take(self, text: str) -> bool:
        if not self.source.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _term(self, depth: int) -> Node:
        character = self.source[self.at]
        if character == "(":
            return self._group(depth)
        self.at += 1
        match character:
            case "^":
                return Assertion("start")
            case "$":
                return Assertion("end")
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise UnknownSyntax(self.source)
        return Character()

    def _group(self, depth: int) -> Node:
        start = _GROUP_START.match(self.source, self.at)
        assert start is not None
        if start[0] == "(" and self.source.startswith("(?", self.at):
            raise UnknownSyntax(self.source)
        self.at = start.end()
        body = self.choice(depth + 1)
        if not self._take(")"):
            raise UnknownSyntax(self.source)
        look = start[2] or (start[1] if start[1] in ("=", "!") else None)
        return body if look is None else Look(body, behind=start[2] is not None, negative=look == "!")

    def _class(self) -> Node:
        negated = self._take("^")
        begin = self.at
        while self.at < len(self.source) and self.source[self.at] != "]":
            self.at += 2 if self.source[self.at] == "\\" else 1
        if self.at >= len(self.source):
            raise UnknownSyntax(self.source)
        empty = self.at == begin
        self.at += 1
        return Character(impossible=empty and not negated)

    def _escape(self) -> Node:
        escape = _LONG_ESCAPE.match(self.source, self.at)
        if escape is None:
            raise UnknownSyntax(self.source)
        self.at = escape.end()
        if escape[0] in ("b", "B"):
            return Assertion("other")
        if escape[0][0] == "k" and len(escape[0]) > 1:
            return Reference()
        return Reference() if escape[0].isdigit() and escape[0][0] != "0" else Character()

    def _repeated(self, term: Node) -> Node:
        least, most = 0, None
        if self._take("?"):
            most = 1
        elif self._take("+"):
            least = 1
        elif not self._take("*"):
            count = _COUNT.match(self.source, self.at)
            if count is None:
                return term
            self.at = count.end()
            least = int(count[1][:9])
            most = least if count[2] is None else int(count[3][:9]) if count[3] else None
        self._take("?")
        return Repeat(term, least, most)
