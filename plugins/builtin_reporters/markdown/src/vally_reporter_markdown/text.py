"""Text of others as Markdown: one line per cell, nothing that is read as markup, fences that cannot be closed."""

from __future__ import annotations

import re

from vally import strip_controls

CELL_LIMIT = 300
OUTPUT_LIMIT = 2_000
NO_VALUE = "–"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def cell(text: str) -> str:
    """Untrusted text for a table cell or a heading: at most 300 characters, markup escaped."""
    line = " ".join(strip_controls(text).split())
    if len(line) > CELL_LIMIT:
        line = f"{line[: CELL_LIMIT - 1]}…"
    return _SPECIAL.sub(_escaped, line)


def _escaped(match: re.Match[str]) -> str:
    # Entities for the characters that open HTML, because not every reader honours a backslash before them.
    character = match[1]
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(character, f"\\{character}")


def fenced(text: str) -> str:
    """A fenced block; the fence is longer than any run of backticks inside."""
    clean = strip_controls(text)
    if len(clean) > OUTPUT_LIMIT:
        clean = f"{clean[: OUTPUT_LIMIT - 1]}…"
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def duration(milliseconds: float) -> str:
    """`8.3s` below ten seconds, `0m21s` and `2m41s` beyond."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


def row(*cells: str) -> str:
    """One row of a table."""
    return f"| {' | '.join(cells)} |"
