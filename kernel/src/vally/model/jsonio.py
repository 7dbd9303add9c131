"""Values as JSON and back: record lines, canonical JSON and its hash, timestamps."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any

from vally.model.surrogates import is_encodable, repaired_text
from vally.model.surrogates import without_surrogates as without_surrogates
from vally.text.numbers import compact_json, es_number

MAX_INTEGER = 2**53 - 1
"""Counts and durations saturate here."""

INTEGRAL_LIMIT = 1e16  # from here on the shortest form of a float has an exponent, not a fraction
_MAX_DIGITS = 4_000  # Python refuses to convert integers of more than 4,300 digits
_MAX_DEPTH = 200
_LONG_NUMBER = re.compile(r"[0-9]{3000}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PlainValue:
    """A value made of JSON types only; `not_finite` has a JSON Pointer for each NaN or infinity that became null."""

    value: Any
    not_finite: tuple[str, ...] = ()


def plain_value(value: object) -> PlainValue:
    """Copy a value into JSON types: integral floats as integers, NaN and infinities as null, other objects as text.

    What is nested deeper than common readers go becomes its JSON text, what contains itself the name of its type.
    """
    quick = _plain_by_json(value)
    if quick is not None:
        return PlainValue(quick)
    not_finite: list[str] = []
    return PlainValue(_plain(value, "", not_finite, ()), tuple(not_finite))


def _plain_by_json(value: object) -> Any:
    """The plain copy of a value that holds nothing odd, by writing and reading it; None when it has to be walked."""
    from vally.model.trajectory import RecordModel, dump_record

    try:
        document = dump_record(value) if isinstance(value, RecordModel) else value
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    if _LONG_NUMBER.search(text) or (text.count("{") + text.count("[") > _MAX_DEPTH and _is_deep(document)):
        return None
    return json.loads(text, parse_float=_integral)


def _integral(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < INTEGRAL_LIMIT else number


def _is_deep(value: object) -> bool:
    """Whether containers are nested deeper than `_plain` leaves them."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[object] = []
        for item in level:
            children = item.values() if isinstance(item, Mapping) else item if isinstance(item, (list, tuple)) else ()
            below += [child for child in children if isinstance(child, (Mapping, list, tuple))]
        if not below:
            return False
        level = below
    return True


def _plain(value: Any, pointer: str, not_finite: list[str], above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, int):
        return _plain_integer(int(value), pointer, not_finite)
    if isinstance(value, float):
        return _plain_float(float(value), pointer, not_finite)
    if not isinstance(value, (Mapping, list, tuple)):
        return _plain(_converted(value), pointer, not_finite, above)
    if id(value) in above:
        return type(value).__name__
    if len(above) == _MAX_DEPTH:
        return _text_of(value)
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {
            _plain_key(key): _plain(item, f"{pointer}/{_escaped(key)}", not_finite, above)
            for key, item in value.items()
        }
    return [_plain(item, f"{pointer}/{index}", not_finite, above) for index, item in enumerate(value)]


def _text_of(value: object) -> str:
    try:
        return compact_json(value)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def _plain_integer(value: int, pointer: str, not_finite: list[str]) -> int | None:
    if value.bit_length() > 3 * _MAX_DIGITS:
        not_finite.append(pointer)
        return None
    return value


def _plain_float(value: float, pointer: str, not_finite: list[str]) -> float | int | None:
    if not math.isfinite(value):
        not_finite.append(pointer)
        return None
    return int(value) if value.is_integer() and abs(value) < INTEGRAL_LIMIT else value


def _plain_key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    return str(key)


def _escaped(key: object) -> str:
    return _plain_key(key).replace("~", "~0").replace("/", "~1")


def _converted(value: Any) -> Any:
    """A JSON type for an object of a plugin: models as their record, collections as lists, everything else as text."""
    from vally.model.trajectory import RecordModel, dump_record

    if isinstance(value, RecordModel):
        return dump_record(value)
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


def encode_line(value: object) -> bytes:
    """One JSON line with its LF; the value must be plain. Lone surrogates become U+FFFD."""
    return _encoded(value, None) + b"\n"


def encode_document(value: object) -> bytes:
    """A JSON file: two-space indentation and a final LF. NaN and infinities become null."""
    return _encoded(plain_value(value).value, 2) + b"\n"


def _encoded(value: object, indent: int | None) -> bytes:
    if indent == 2 and isinstance(value, dict) and value and not _has_containers(value):
        # The library lays out in Python, which takes several times as long for the many small files.
        pairs = (f"{json.dumps(key, ensure_ascii=False)}: {_scalar(item)}" for key, item in value.items())
        text = ",\n  ".join(pairs)
        if is_encodable(text):
            return f"{{\n  {text}\n}}".encode()
    separators = None if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Two keys may be equal once repaired, so the value goes through a reader.
        repaired = json.loads(repaired_text(text))
    return json.dumps(repaired, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators).encode()


def _has_containers(value: Mapping[str, object]) -> bool:
    return any(isinstance(item, (dict, list, tuple)) for item in value.values())


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def record_line(record: object) -> bytes:
    """The line of a record model or mapping; a trial result's `warnings` name the numbers that became null."""
    from vally.model.results import add_warnings

    plain = plain_value(record)
    value = plain.value
    if plain.not_finite and isinstance(value, dict) and value.get("type") == "trial-result":
        value = add_warnings(value, not_finite_warnings(plain.not_finite))
    return encode_line(value)


def not_finite_warnings(pointers: Sequence[str]) -> list[str]:
    """One warning for each number that became null, at most twenty and then their count."""
    shown = [f"the number at {pointer} is not finite and was recorded as null" for pointer in pointers[:20]]
    if len(pointers) > 20:
        shown.append(f"{len(pointers) - 20} more numbers are not finite and were recorded as null")
    return shown


def parse_json(data: bytes | str) -> Any:
    """Read one JSON value; raises `ValueError`.

    Leniently: a byte-order mark is skipped, invalid UTF-8 and lone surrogates become U+FFFD, NaN and infinities null.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", errors="replace")
    try:
        value = _decoded(text.removeprefix("\ufeff"))
        if "\\ud" in text or "\\uD" in text or not is_encodable(text):
            return without_surrogates(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError:
        if "\0" in text[:_LOOKED_AT]:
            # As shells on Windows write what they redirect.
            raise ValueError("it looks like UTF-16, and must be UTF-8") from None
        raise
    return value


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when there is none or it cannot be read."""
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer of more digits than Python converts; looking at each of them takes half as long again.
        return _DIGIT_COUNTING_DECODER.decode(text)


def _null(_: str) -> None:
    return None


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_LOOKED_AT = 100
_DECODER = json.JSONDecoder(parse_constant=_null, parse_float=_float)
_DIGIT_COUNTING_DECODER = json.JSONDecoder(parse_constant=_null, parse_float=_float, parse_int=_integer)


def canonical_json(value: object) -> str:
    """The form that is hashed: keys sorted by code point, no blanks, numbers the ECMAScript way.

    Raises `ValueError` for NaN and infinities and `TypeError` for what is not JSON.
    """
    pieces: list[str] = []
    _write_canonical(value, pieces.append)
    return "".join(pieces)


def _write_canonical(value: Any, write: Callable[[str], None]) -> None:
    if value is None or isinstance(value, bool):
        write({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        write(_canonical_text(value))
    elif isinstance(value, (int, float)):
        write(_canonical_number(value))
    elif isinstance(value, Mapping):
        write("{")
        for index, key in enumerate(sorted(value)):
            write(("," if index else "") + _canonical_text(key) + ":")
            _write_canonical(value[key], write)
        write("}")
    elif isinstance(value, (list, tuple)):
        write("[")
        for index, item in enumerate(value):
            write("," if index else "")
            _write_canonical(item, write)
        write("]")
    else:
        raise TypeError(f"{type(value).__name__} is not a JSON value")


def _canonical_text(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not a JSON key")
    return json.dumps(without_surrogates(text), ensure_ascii=False)


def _canonical_number(value: float) -> str:
    number = es_number(value)
    if not number[-1].isdigit():
        raise ValueError(f"{number} has no canonical form")
    return number


def content_hash(value: object) -> str:
    """First 16 lower-case hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def timestamp(moment: datetime | None = None) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ` of an aware time (default: now), truncated to milliseconds."""
    utc = (moment or datetime.now(UTC)).astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z".rjust(24, "0")


def parse_timestamp(value: object) -> datetime | None:
    """Read an ISO 8601 time of any offset (none means UTC) or milliseconds since 1970; None when it is neither."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _EPOCH + timedelta(milliseconds=value)
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value.strip())
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return None
