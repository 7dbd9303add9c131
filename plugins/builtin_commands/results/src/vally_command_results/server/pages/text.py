"""Text of others for pages: every character that acts instead of being seen is shown as a sign."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vally import compact_json

NAME_LENGTH = 160
_LINE_ENDS = re.compile("\r\n|[\u2028\u2029]")
# Controls but newline and tab, marks that reorder or hide text, and surrogates, which no encoding carries.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with the number of each character that acts in its place, such as `[U+202E]` for an override."""
    return _ACTING.sub(_sign, _LINE_ENDS.sub("\n", text))


def _sign(match: re.Match[str]) -> str:
    return f"[U+{ord(match[0]):04X}]"


def name(value: object, limit: int = NAME_LENGTH) -> str:
    """A name on one line, cut in its middle so that its end stays; `(none)` without one."""
    if value is None:
        return "(none)"
    text = " ".join(visible(str(value)[: 8 * limit]).split()) or "(empty)"
    rest = len(str(value)) > 8 * limit
    if len(text) <= limit and not rest:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 1]}…{'' if rest else text[-tail:]}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The start of a text; `size` is the length of all of it in bytes when there is more, else None."""

    text: str
    size: int | None = None


def excerpt(value: Any, limit: int) -> Excerpt:
    """At most `limit` characters of a text, or of a value as JSON."""
    text = as_text(value)
    if len(text) <= limit:
        return Excerpt(visible(text))
    return Excerpt(visible(text[:limit]), len(text.encode("utf-8", "replace")))


def as_text(value: Any) -> str:
    """A text as it is, nothing as nothing, any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


def one_line(value: Any, limit: int = 140) -> str:
    """The start of a text on one line."""
    text = " ".join(visible(as_text(value)[: 4 * limit]).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
