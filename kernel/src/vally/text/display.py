"""Texts made fit for names, evidence, records and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from vally.text.numbers import compact_json, es_number, fixed, json_string, one_decimal, two_decimals

__all__ = [
    "clip_end",
    "clip_middle",
    "compact_json",
    "cut_clusters",
    "cut_evidence",
    "cut_middle",
    "describe_grader_value",
    "es_number",
    "fixed",
    "json_string",
    "one_decimal",
    "one_line_evidence",
    "sanitise",
    "single_line",
    "strip_controls",
    "two_decimals",
]

NAME_CLUSTERS = 60
EVIDENCE_LENGTH = 2_000
MULTILINE_EVIDENCE_LENGTH = 10_000

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROLS_AND_SEPARATORS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPE_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"
)
# Carriage return and the rest of Cc; then the marks that reorder the text which follows them on the terminal.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def sanitise(text: str) -> str:
    """One line without control characters: they become spaces, runs of whitespace one space, ends are trimmed."""
    return " ".join(_CONTROLS_AND_SEPARATORS.sub(" ", _printable(text)).split())


def cut_clusters(text: str, limit: int = NAME_CLUSTERS) -> str:
    """Cut to `limit` extended grapheme clusters, the last of which is then `…`."""
    if len(text) <= limit:
        return text
    kept = list(islice(_graphemes(text), limit + 1))
    return text if len(kept) <= limit else "".join(kept[: limit - 1]) + "…"


def _graphemes(text: str) -> Iterable[str]:
    if text.isascii() and "\r\n" not in text:
        return text
    from wcwidth import iter_graphemes

    clusters: Iterable[str] = iter_graphemes(text)
    return clusters


def describe_grader_value(value: object) -> str:
    """A config value as part of a name: strings, numbers, booleans and lists of them; anything else is empty."""
    return cut_clusters(sanitise(_described(value)))


def _described(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return compact_json(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_described(item) for item in value)
    return ""


def one_line_evidence(text: str) -> str:
    """Evidence of one line: line breaks and tabs escaped, other controls as spaces, at most 2,000 code points."""
    # What lies behind the limit can be dropped first, because no replacement is shorter than what it replaces.
    head = _printable(text[: EVIDENCE_LENGTH + 1])
    return cut_evidence(_CONTROLS.sub(lambda match: _LINE_ESCAPES.get(match[0], " "), head))


def cut_evidence(text: str, limit: int = EVIDENCE_LENGTH) -> str:
    """Cut to `limit` code points, the last of which is then `…`."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_middle(text: str, limit: int) -> str:
    """Cut to `limit` code points, of which one is a `…` in the midst: for errors, which name their cause at the end."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"


def strip_controls(text: str) -> str:
    """Untrusted text for a terminal: no escape sequences, no control characters but newline and tab, no reordering."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub("", _ESCAPE_SEQUENCES.sub("", _printable(text)))


def single_line(text: str) -> str:
    """Untrusted text as one line of a terminal: as `strip_controls`, and every kind of line break is a blank."""
    return " ".join(strip_controls(text).splitlines())


def _printable(text: str) -> str:
    """Replace lone surrogates, which no encoding of the outside world can carry."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def clip_middle(text: str, limit: int, head: int, tail: int) -> str:
    """Cut a text of more than `limit` UTF-8 bytes in its middle: `head` and `tail` bytes and a marker remain.

    A character that a cut would split is dropped and counted among the omitted bytes.
    """
    if 4 * len(text) <= limit:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    start, end = _boundary(data, head, -1), _boundary(data, len(data) - tail, 1)
    return _decoded(data[:start]) + _marker(end - start) + _decoded(data[end:])


def clip_end(text: str, limit: int) -> str:
    """Cut a text of more than `limit` UTF-8 bytes at its end: at most `limit` bytes and a marker remain."""
    return clip_middle(text, limit, limit, 0)


def _marker(count: int) -> str:
    return f"…[{count} bytes omitted]…"


def _boundary(data: bytes, position: int, step: int) -> int:
    """The next position from `position` in direction `step` that is not inside a character."""
    while 0 < position < len(data) and data[position] & 0xC0 == 0x80:
        position += step
    return position


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def join_capped(items: Iterable[Any], total: int, limit: int = 20) -> str:
    """The first `limit` items joined by `, `, and how many more there are: `a, b, … (+3 more)`."""
    shown = [str(item) for item in islice(items, limit)]
    more = f", … (+{total - len(shown)} more)" if total > len(shown) else ""
    return ", ".join(shown) + more
