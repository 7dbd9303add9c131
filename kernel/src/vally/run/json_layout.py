"""How the JSON of a file is laid out: one value as a whole, or one value per line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from vally.model.jsonio import parse_json

_BLANKS = b" \t\r\n\xef\xbb\xbf"


def look_at(file: IO[bytes]) -> tuple[list[Any] | None, Mapping[str, Any] | None]:
    """(all values of a file that is one array, or one object over several lines; the first object of JSON lines).

    Reading goes on wherever this leaves the file.
    """
    start = file.tell()
    first = _filled_line(file)
    begins = first.lstrip(_BLANKS)[:1]
    value = _parsed(first)
    if isinstance(value, Mapping):
        return None, value
    second = _parsed(_filled_line(file))
    if isinstance(second, Mapping) or begins not in (b"{", b"["):
        return None, second if isinstance(second, Mapping) else None
    file.seek(start)
    whole = _parsed(file.read())
    if isinstance(whole, list):
        return whole, None
    return ([whole], None) if isinstance(whole, Mapping) else (None, None)


def _filled_line(file: IO[bytes]) -> bytes:
    line = file.readline()
    while line and not line.strip(_BLANKS):
        line = file.readline()
    return line


def _parsed(data: bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        return None
