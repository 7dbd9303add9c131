"""Colour by terminal codes; it never carries meaning alone."""

from __future__ import annotations

from dataclasses import dataclass

_CODES = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_BY_GLYPH = {"✔": "green", "✘": "red", "⚠": "yellow", "○": "dim"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours text, or leaves it alone."""

    color: bool = False

    def paint(self, text: str, name: str) -> str:
        """The text in a colour."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.color else text

    def glyph(self, glyph: str, word: str = "") -> str:
        """A glyph and its word in the colour of the glyph."""
        return self.paint(f"{glyph} {word}" if word else glyph, _BY_GLYPH.get(glyph, "bold"))
