"""Colour by terminal codes, and text from others made harmless; colour never carries meaning alone."""

from __future__ import annotations

from dataclasses import dataclass

from vally import strip_controls

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
        text = f"{glyph} {word}" if word else glyph
        return self.paint(text, _BY_GLYPH.get(glyph, "bold"))


def one_line(text: str) -> str:
    """Untrusted text on one line, without control characters and escape sequences."""
    return " ".join(strip_controls(text).split())


def cut(text: str, width: int) -> str:
    """At most `width` characters, the last one an ellipsis when something was cut."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def duration(milliseconds: float) -> str:
    """`8.3s` below a minute, else `2m41s` or `1h02m`."""
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"
