"""Stand-ins for glyphs that a stream cannot encode."""

from __future__ import annotations

from typing import Any

STAND_INS = {
    "✔": "[ok]",
    "✘": "[FAIL]",
    "⚠": "[warn]",
    "○": "[skip]",
    "ℹ": "[info]",
    "✗": "x",
    "━": "=",
    "─": "-",
    "→": "->",
}
_OTHERS = {"…": "...", "·": "-", "–": "-", "←": "<-"}


def can_encode(stream: Any, text: str) -> bool:
    """Whether a stream can show a text."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fit_glyphs(text: str, stream: Any) -> str:
    """The text with stand-ins for the glyphs of reports where the stream needs them."""
    if text.isascii() or can_encode(stream, "✔…·–←"):
        return text
    missing = {glyph: word for glyph, word in _OTHERS.items() if not can_encode(stream, glyph)}
    if not can_encode(stream, "✔"):
        missing |= STAND_INS
    return text.translate({ord(glyph): word for glyph, word in missing.items()})
