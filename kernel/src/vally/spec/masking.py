"""Placeholders hidden from the YAML parser: equally long runs of noncharacters stand for them, which go afterwards.

Two other things that YAML 1.2 has and the parser does not know are hidden in the same way: the three characters that
YAML 1.1 takes for line breaks, and characters that JSON spells as a pair of surrogates, such as `\\ud83d\\ude00`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from vally.spec.nodes import Hole

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_COLUMN = r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
PLACEHOLDER = re.compile(
    rf"(?P<dollar>\$)?\$\{{(?P<name>{NAME}|row\.{_COLUMN}|eval\.{NAME})(?:=(?P<default>[^}}\r\n]*))?\}}"
)
_LINE_END = re.compile(r"[\r\n]")
_FOREIGN_BREAKS = "\x85\u2028\u2029"
_MARKS = ("${", "\\ud", "\\uD", *_FOREIGN_BREAKS)
_NONCHARACTERS = (
    *range(0xFDD0, 0xFDF0),
    *(plane * 0x10000 + low for plane in range(1, 17) for low in (0xFFFE, 0xFFFF)),
)
_PRIVATE = (*range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))
# An even number of backslashes in front leaves the next one to begin an escape.
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_DIGITS = 40


class TooManyCharacters(Exception):
    """The text uses every character that could hide a placeholder."""


class Mask:
    """Hides what the parser must not see. `text` is as long as the original, line breaks at the same places.

    `hides` tells whether there was anything to hide.
    """

    def __init__(self, text: str) -> None:
        self._runs: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self._counts: dict[int, int] = {}
        self.text = text
        self.hides = any(mark in text for mark in _MARKS)
        if not self.hides:
            return
        alphabet = "".join(map(chr, _unused(text, len(_FOREIGN_BREAKS) + 1 + _DIGITS)))
        hidden, self._first, self._digits = alphabet[:3], alphabet[3], alphabet[4:]
        self._breaks = str.maketrans(hidden, _FOREIGN_BREAKS)
        self._find = re.compile(f"{self._first}[{self._digits}]+|[{hidden}]")
        masked = self._without_placeholders(text)
        masked = _PAIR.sub(lambda match: match[1] + self._run(match[2]), masked)
        self.text = masked.translate(str.maketrans(_FOREIGN_BREAKS, hidden))

    def _without_placeholders(self, text: str) -> str:
        pieces, end = [], 0
        for match in _placeholders(text):
            pieces += [text[end : match.start()], self._run(match[0])]
            end = match.end()
        return "".join((*pieces, text[end:]))

    def _run(self, piece: str) -> str:
        """A run of the length of a piece of text that names it: equal pieces share one."""
        known = self._by_text.get(piece)
        if known is None:
            length = len(piece)
            number = self._counts[length] = self._counts.get(length, -1) + 1
            digits = ""
            for _ in range(length - 1):
                number, digit = divmod(number, _DIGITS)
                digits += self._digits[digit]
            known = self._by_text[piece] = self._first + digits
            self._runs[known] = piece
        return known

    def restore(self, text: str, style: str = "") -> tuple[str, tuple[Hole, ...]]:
        """Put back what was hidden in a scalar of this style, with the places of its placeholders."""
        if not self.hides or not self._find.search(text):
            return text, ()
        pieces: list[str] = []
        holes, length, end = [], 0, 0
        for match in self._find.finditer(text):
            piece = self._runs.get(match[0])
            shown = match[0].translate(self._breaks) if piece is None else piece
            if piece is not None and piece.startswith("\\") and style == '"':
                shown = json.loads(f'"{piece}"')
            length += match.start() - end
            if piece is not None and (placeholder := PLACEHOLDER.fullmatch(piece)):
                holes.append(hole(placeholder, length))
            pieces += [text[end : match.start()], shown]
            length, end = length + len(shown), match.end()
        return "".join((*pieces, text[end:])), tuple(holes)


def hide_placeholders(text: str) -> str:
    """A text of the same length in which nothing is left to a parser that only `Mask` can read."""
    return Mask(text).text


def hole(match: re.Match[str] | None, start: int) -> Hole:
    """The hole of a matched placeholder that stands at `start`."""
    assert match is not None
    return Hole(start, start + len(match[0]), match["name"], match["default"], match["dollar"] is not None)


def find_holes(text: str) -> tuple[Hole, ...]:
    """The placeholders of a text that no parser has seen."""
    return tuple(hole(match, match.start()) for match in _placeholders(text))


def _placeholders(text: str) -> Iterator[re.Match[str]]:
    """The placeholders of a text, in time linear in its length: each begins in front of a `}` of its line."""
    position = 0
    while (start := text.find("${", position)) >= 0:
        line_end = found.start() if (found := _LINE_END.search(text, start)) else len(text)
        yield from PLACEHOLDER.finditer(text, max(start - 1, position), text.rfind("}", start, line_end) + 1)
        position = line_end


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
