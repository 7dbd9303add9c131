"""Text of others on one line, and numbers as the report words them."""

from __future__ import annotations

from vally import redact_patterns, strip_controls


def printable(text: str) -> str:
    """Untrusted text without control characters, escape sequences and what looks like a credential."""
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
    from rich.cells import cell_len

    return cell_len(text)


def cut_to_cells(text: str, limit: int) -> str:
    """At most `limit` columns, the last character an ellipsis when something was cut."""
    if cells(text) <= limit:
        return text
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, limit - 1).rstrip()}…" if limit > 1 else "…"


def pad(text: str, width: int) -> str:
    """The text with blanks up to `width` columns."""
    return text + " " * (width - cells(text))


def duration(milliseconds: float) -> str:
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
