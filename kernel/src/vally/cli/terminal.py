"""What reports for people are made of: text of others made fit for a terminal, columns, colours, durations."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_WIDTH = 100
_CODES = {"green": "32", "red": "31", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
_BY_GLYPH = {"✔": "green", "✘": "red", "⚠": "yellow", "○": "dim"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours text by terminal codes, or leaves it alone; colour never carries meaning alone."""

    color: bool = False

    def paint(self, text: str, name: str) -> str:
        """The text in a colour: green, red, yellow, cyan, dim or bold."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.color else text

    def glyph(self, glyph: str, word: str = "") -> str:
        """A glyph and its word in the colour of the glyph."""
        return self.paint(f"{glyph} {word}" if word else glyph, _BY_GLYPH.get(glyph, "bold"))


def printable(text: str) -> str:
    """Untrusted text without control characters, escape sequences and what looks like a credential."""
    from vally.run.redaction import redact_patterns
    from vally.text.display import strip_controls

    # Controls go first: they could stand in the midst of a credential.
    return redact_patterns(strip_controls(text))


def name_line(text: str) -> str:
    """A name on one line with single blanks, so that two blanks can end it; `(unnamed)` when nothing is left."""
    return " ".join(printable(text).split()) or "(unnamed)"


def one_line(text: str) -> str:
    """Untrusted text on one line."""
    lines = printable(text).replace("\t", " ").splitlines()
    return " ".join(stripped for line in lines if (stripped := line.strip()))


def cells(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from wcwidth import width

    columns: int = width(text)
    return columns


def cut_to_cells(text: str, limit: int) -> str:
    """At most `limit` columns, the last character an ellipsis when something was cut."""
    if cells(text) <= limit:
        return text
    from wcwidth import iter_graphemes

    kept, columns = [], 0
    for cluster in iter_graphemes(text):
        columns += cells(cluster)
        if columns > limit - 1:
            break
        kept.append(cluster)
    return f"{''.join(kept).rstrip()}…"


def pad(text: str, width: int) -> str:
    """The text with blanks up to `width` columns."""
    return text + " " * (width - cells(text))


def elapsed(milliseconds: float) -> str:
    """`8.3s` below a minute, else `2m41s` or `1h02m`."""
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    return clock(round(milliseconds / 1000))


def clock(seconds: float) -> str:
    """`0m12s`, `2m41s`, `1h02m`; what is left below the last unit does not count."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


def short_clock(seconds: float) -> str:
    """`0:12`, `2:41`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def plural(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `31,204 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def terminal_width(stream: Any) -> int | None:
    """Columns of the terminal behind a stream; None when there is none or it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (AttributeError, OSError, ValueError):
        return None


def report_width(stream: Any, environ: Mapping[str, str]) -> int:
    """Columns of a report: those of its terminal, else `COLUMNS`, else 100."""
    text = environ.get("COLUMNS", "")
    named = int(text) if text.isascii() and text.isdigit() else 0
    return terminal_width(stream) or named or DEFAULT_WIDTH


def inert_line(text: str, environ: Mapping[str, str]) -> str:
    """One line outside of report blocks: inside GitHub Actions it is no workflow command, in neither spelling."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return text
    # One spelling is understood anywhere in a line, the other after blanks only.
    text = text.replace("##[", "## [")
    return text.replace("::", ": :", 1) if text.lstrip().startswith("::") else text


def report_block(text: str, environ: Mapping[str, str]) -> str:
    """A block of a report with its last line end; inside GitHub Actions nothing in it acts as a workflow command."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return text
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text}::{token}::\n"
