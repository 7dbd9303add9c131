"""Text of others for the page: without control characters, and no longer than a reader wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vally import compact_json, elapsed, strip_controls

NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Cut:
    """A text and how many characters of it are left out at its end."""

    text: str
    omitted: int = 0

    def __bool__(self) -> bool:
        return bool(self.text)

    @property
    def may_scroll(self) -> bool:
        """Whether it may need more room than its block has on a phone; a keyboard must reach it then."""
        return len(self.text) > 500 or self.text.count("\n") > 12


def cut(text: str, limit: int) -> Cut:
    """The text without control characters, at most `limit` characters of it."""
    # What lies far behind the limit need not be cleaned: no escape sequence that matters is that long.
    clean = strip_controls(text[: 4 * limit])
    kept = clean[:limit]
    return Cut(kept, max(0, len(clean) - limit) + max(0, len(text) - 4 * limit))


def name(text: str) -> str:
    """A name on one line; `(unnamed)` when nothing is left."""
    clean = " ".join(strip_controls(text[: 4 * NAME_LIMIT]).split())
    shown = clean if len(clean) <= NAME_LIMIT else f"{clean[: NAME_LIMIT - 1]}…"
    return shown or "(unnamed)"


def value(item: Any, limit: int) -> Cut:
    """A JSON value: a text as it is, anything else as compact JSON."""
    if item is None:
        return Cut("")
    if isinstance(item, str):
        return cut(item, limit)
    try:
        return cut(compact_json(item), limit)
    except (TypeError, ValueError):
        return cut(repr(item), limit)


def milliseconds(number: float) -> str:
    """`740ms`, `8.3s`, `2m41s`, `1h02m`."""
    return f"{number:.0f}ms" if number < 999.5 else elapsed(number)
