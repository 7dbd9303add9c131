"""Text of others as Markdown: one line per cell, nothing that is read as markup, fences that cannot be closed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vally.text.display import cut_evidence, strip_controls

CELL_LIMIT = 300
NO_VALUE = "–"
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~!&$]")
# Entities for the characters that open HTML, because not every reader honours a backslash before them.
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_cell(text: str, limit: int = CELL_LIMIT) -> str:
    """Untrusted text for a table cell or a heading: one line of at most `limit` characters, markup escaped."""
    return _SPECIAL.sub(_escaped, cut_evidence(" ".join(strip_controls(text).split()), limit))


def _escaped(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[0], f"\\{match[0]}")


def markdown_name(text: str) -> str:
    """The same for the first cell of a row or a heading, which is never empty."""
    return markdown_cell(text) or NO_VALUE


def markdown_fence(text: str, limit: int = 2_000) -> str:
    """A fenced block of at most `limit` characters; the fence is longer than any run of backticks inside."""
    clean = cut_evidence(strip_controls(text), limit)
    longest = max((len(run) for run in re.findall("`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def markdown_row(*cells: str) -> str:
    """One row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def markdown_head(columns: Mapping[str, str]) -> Iterator[str]:
    """The first two lines of a table: titles, and their alignment as `---` or `---:`."""
    yield markdown_row(*columns)
    yield f"|{'|'.join(columns.values())}|"


def report_duration(milliseconds: float) -> str:
    """`8.3s` below ten seconds, `0m21s`, `2m41s` and `1h02m` beyond."""
    if milliseconds < 9_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"
