"""Placeholders hidden from the YAML parser: equally long runs of noncharacters stand for them, which go afterwards.

The three characters that YAML 1.1 parsers take for line breaks and YAML 1.2 does not are hidden in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vally.spec.nodes import Hole

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_COLUMN = r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
PLACEHOLDER = re.compile(
    rf"(?P<dollar>\$)?\$\{{(?P<name>{NAME}|row\.{_COLUMN}|eval\.{NAME})(?:=(?P<default>[^}}\r\n]*))?\}}"
)
_FOREIGN_BREAKS = "\x85\u2028\u2029"
_NONCHARACTERS = (
    *range(0xFDD0, 0xFDF0),
    *(plane * 0x10000 + low for plane in range(1, 17) for low in (0xFFFE, 0xFFFF)),
)
_PRIVATE = (*range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_DIGITS = 40


class TooManyCharacters(Exception):
    """The text uses every character that could hide a placeholder."""


class Mask:
    """Hides what the parser must not see. `text` is as long as the original, line breaks at the same places."""

    def __init__(self, text: str) -> None:
        self._runs: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self._counts: dict[int, int] = {}
        self.text = text
        if "${" not in text and not any(mark in text for mark in _FOREIGN_BREAKS):
            self._find = None
            return
        alphabet = "".join(map(chr, _unused(text, len(_FOREIGN_BREAKS) + 1 + _DIGITS)))
        hidden, self._first, self._digits = alphabet[:3], alphabet[3], alphabet[4:]
        self._breaks = str.maketrans(hidden, _FOREIGN_BREAKS)
        self._find = re.compile(f"{self._first}[{self._digits}]+|[{hidden}]")
        self.text = PLACEHOLDER.sub(lambda match: self._run(match[0]), text).translate(
            str.maketrans(_FOREIGN_BREAKS, hidden)
        )

    def _run(self, placeholder: str) -> str:
        """A run of the placeholder's length that names it: equal placeholders share one."""
        known = self._by_text.get(placeholder)
        if known is None:
            length = len(placeholder)
            number = self._counts[length] = self._counts.get(length, -1) + 1
            digits = ""
            for _ in range(length - 1):
                number, digit = divmod(number, _DIGITS)
                digits += self._digits[digit]
            known = self._by_text[placeholder] = self._first + digits
            self._runs[known] = placeholder
        return known

    def restore(self, text: str) -> tuple[str, tuple[Hole, ...]]:
        """Put back what was hidden in a piece of the text, with the places of its placeholders."""
        if self._find is None or not self._find.search(text):
            return text, ()
        plain = self._find.sub(lambda match: self._runs.get(match[0], match[0]), text).translate(self._breaks)
        return plain, tuple(self._holes(text))

    def _holes(self, text: str) -> Iterator[Hole]:
        assert self._find is not None
        for match in self._find.finditer(text):
            placeholder = self._runs.get(match[0])
            if placeholder is not None:
                yield hole(PLACEHOLDER.fullmatch(placeholder), match.start())


def hide_placeholders(text: str) -> str:
    """A text of the same length in which no placeholder, and no line break of other dialects, is left to a parser."""
    return Mask(text).text


def hole(match: re.Match[str] | None, start: int) -> Hole:
    """The hole of a matched placeholder that stands at `start`."""
    assert match is not None
    return Hole(start, start + len(match[0]), match["name"], match["default"], match["dollar"] is not None)


def find_holes(text: str) -> tuple[Hole, ...]:
    """The placeholders of a text that no parser has seen."""
    return tuple(hole(match, match.start()) for match in PLACEHOLDER.finditer(text))


def _unused(text: str, count: int) -> list[int]:
    """Characters that neither stand in the text nor are spelled by an escape in it."""
    taken = {ord(character) for character in set(text) if ord(character) >= 0xFDD0}
    taken.update(int(match[1] or match[2], 16) for match in _ESCAPE.finditer(text))
    free = list(_first_unused((*_NONCHARACTERS, *_PRIVATE), taken, count))
    if len(free) < count:
        raise TooManyCharacters
    return free


def _first_unused(candidates: Iterable[int], taken: set[int], count: int) -> Iterator[int]:
    for candidate in candidates:
        if candidate not in taken:
            yield candidate
            count -= 1
            if not count:
                return
