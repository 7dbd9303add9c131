"""Durations with units: `90s`, `2m40s`, `1.5m`."""

from __future__ import annotations

import re
from fractions import Fraction

from vally.errors import VallyError

MAX_MS = 168 * 3_600_000
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_FORM = re.compile("".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in _UNITS))
_LARGER = {unit: "".join(f"(?:[0-9]+{other})?" for other in list(_UNITS)[:index]) for index, unit in enumerate(_UNITS)}
_ENDS = [rf"{larger}[0-9]+(?:\.[0-9]+)?{unit}" for unit, larger in _LARGER.items()]
DURATION_PATTERN = f"^(?:{'|'.join(_ENDS)})$"
"""What durations look like, for JSON Schema; it does not know the longest one."""
# Python refuses to convert longer numbers; nothing below the maximum needs this many characters.
_MAX_LENGTH = 200


class InvalidDuration(VallyError, ValueError):
    """A text is not a duration; the message quotes it and shows the form."""


class DurationOutOfRange(InvalidDuration):
    """A duration is too long or too short; the message says which lengths are allowed."""


def parse_duration(text: str) -> int:
    """Return milliseconds, rounded half up, at most those of 168h; raises InvalidDuration."""
    match = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    parts = [(unit, number) for unit, number in match.groupdict().items() if number] if match else []
    if not parts or any("." in number for _, number in parts[:-1]):
        raise InvalidDuration(f"'{_shown(text)}' is not a duration: write for example 90s, 2m30s, 1.5h or 500ms")
    exact = sum(Fraction(number) * _UNITS[unit] for unit, number in parts)
    milliseconds = (2 * exact + 1) // 2
    if milliseconds > MAX_MS:
        raise DurationOutOfRange(f"'{_shown(text)}' is longer than 168h")
    return int(milliseconds)


def format_duration(milliseconds: int) -> str:
    """Write a duration in its shortest form, such as `2m40s`, `1.5s` or `500ms`; parse_duration reads it back."""
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    hours, rest = divmod(milliseconds, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    seconds, fraction = divmod(rest, _UNITS["s"])
    decimals = f".{fraction:03}".rstrip("0") if fraction else ""
    written = [f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m")) if count]
    if seconds or fraction or not written:
        written.append(f"{seconds}{decimals}s")
    return "".join(written)


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
