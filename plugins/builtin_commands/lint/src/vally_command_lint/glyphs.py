"""Glyphs of levels, their colours, and words for streams that cannot show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vally_command_lint.findings import Level

PASS = "✔"
FAIL = "✘"
CHECK_GLYPHS: Mapping[Level | None, str] = MappingProxyType({"error": FAIL, "warning": "⚠", "info": "ℹ", None: PASS})
FINDING_GLYPHS: Mapping[Level, str] = MappingProxyType({"error": "✗", "warning": "⚠", "info": "ℹ"})
_STAND_INS = str.maketrans({"✔": "[ok]", "✘": "[FAIL]", "⚠": "[warn]", "ℹ": "[info]", "✗": "x", "…": "..."})
_COLORS = MappingProxyType({"✔": "green", "✘": "red", "✗": "red", "⚠": "yellow", "ℹ": "blue"})


@dataclass(frozen=True, slots=True)
class Painter:
    """Puts glyphs into a text for one stream."""

    color: bool
    plain: bool

    @classmethod
    def of(cls, stream: Any, *, color: bool) -> Painter:
        """For a stream; words stand for glyphs where it cannot encode them."""
        try:
            "✔".encode(getattr(stream, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return cls(color, plain=True)
        return cls(color, plain=False)

    def glyph(self, glyph: str) -> str:
        """A glyph, coloured when the stream shows colours."""
        import click

        shown = glyph.translate(_STAND_INS) if self.plain else glyph
        return click.style(shown, fg=_COLORS[glyph]) if self.color else shown
