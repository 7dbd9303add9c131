"""Glyphs and their stand-ins for streams that cannot encode them."""

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
    "…": "...",
    "·": "-",
}


def can_encode(stream: Any) -> bool:
    """Whether a stream can show the glyphs of the report."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        "✔━→…·".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fit(text: str, stream: Any) -> str:
    """The text with stand-ins where the stream needs them."""
    if can_encode(stream):
        return text
    for glyph, stand_in in STAND_INS.items():
        text = text.replace(glyph, stand_in)
    return text
