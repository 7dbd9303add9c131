"""Text of others as Markdown: one line per cell, nothing that is read as markup, fences that cannot be closed."""

from __future__ import annotations

import re

from vally import fixed, strip_controls

CELL_LIMIT = 300
OUTPUT_LIMIT = 2_000
NO_VALUE = "–"
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~!&$]")
# Entities for the characters that open HTML, because not every reader honours a backslash before them.
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def cell(text: str) -> str:
    """Untrusted text for a table cell or a heading: one line of at most 300 characters, markup escaped."""
    return _SPECIAL.sub(_escaped, _cut(" ".join(strip_controls(text).split()), CELL_LIMIT))


def first_cell(text: str) -> str:
    """The same for the first cell of a row or a heading, which is never empty."""
    return cell(text) or NO_VALUE


def _escaped(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[0], f"\\{match[0]}")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def fenced(text: str) -> str:
    """A fenced block of at most 2,000 characters; the fence is longer than any run of backticks inside."""
    clean = _cut(strip_controls(text), OUTPUT_LIMIT)
    longest = max((len(run) for run in re.findall("`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def row(*cells: str) -> str:
    """One row of a table."""
    return f"| {' | '.join(cells)} |"


def duration(milliseconds: float) -> str:
    """`8.3s` below ten seconds, `0m21s`, `2m41s` and `1h02m` beyond."""
    if milliseconds < 9_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


def percent(value: float) -> str:
    """A percentage without decimals."""
    return f"{fixed(value, 0)}%"


def plural(number: int, noun: str) -> str:
    """`1 trial`, `2,847 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
