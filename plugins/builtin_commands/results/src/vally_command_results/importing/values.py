"""Values of records made fit for columns of any database."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from vally import parse_timestamp, timestamp

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LARGEST = 2**63 - 1
_FORM = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"
)


def text(value: object, limit: int | None = None) -> str | None:
    """A text without what databases refuse (NUL, lone surrogates), cut to `limit`; None for what is no text."""
    if not isinstance(value, str):
        return None
    cut = value if limit is None else value[:limit]
    return cut if cut.isascii() and "\0" not in cut else _UNSTORABLE.sub("\ufffd", cut)


def whole(value: object) -> int | None:
    """A whole number that fits a column."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return max(-_LARGEST, min(_LARGEST, round(value)))


def real(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def flag(value: object) -> bool | None:
    """True, false or unknown."""
    return value if isinstance(value, bool) else None


def time(value: object) -> str | None:
    """A time as columns hold it."""
    if not isinstance(value, str):
        return None
    if len(value) == 24 and value[-1] == "Z" and value[10] == "T" and value[19] == ".":
        # Nearly all times are of this form already, and reading each costs more than everything else of a record.
        return value if _FORM.fullmatch(value) else None
    moment = parse_timestamp(value)
    return None if moment is None else timestamp(moment)


def clean(value: Any) -> Any:
    """A JSON value whose texts and numbers every database takes."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float):
        return real(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _LARGEST else float(value) if abs(value) < 1e300 else None
    if isinstance(value, Mapping):
        return {str(text(str(key))): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value
