"""Numbers and JSON as ECMAScript prints them, and scores as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from json.encoder import encode_basestring as quoted
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def es_number(value: float) -> str:
    """Print a number as ECMAScript's Number::toString does: `1` for 1.0, else the shortest form that reads back."""
    if isinstance(value, int) and abs(value) <= 2**53:
        return str(int(value))
    try:
        double = float(value)
    except OverflowError:
        double = math.inf if value > 0 else -math.inf
    if not math.isfinite(double):
        return "NaN" if math.isnan(double) else "Infinity" if double > 0 else "-Infinity"
    if double == 0:
        return "0"
    return ("-" if double < 0 else "") + _positive(abs(double))


def _positive(double: float) -> str:
    digits, point = _decimal(double)
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{point - 1:+d}"


def _decimal(double: float) -> tuple[str, int]:
    """Shortest digits d and exponent n with value 0.d x 10^n."""
    mantissa, _, exponent = repr(double).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0"), len(whole) - leading + int(exponent or 0)


def compact_json(value: Any) -> str:
    """Write a JSON value without blanks: keys in their order, non-ASCII kept, numbers the ECMAScript way."""
    return "".join(_pieces(value))


def _pieces(root: Any) -> Iterator[str]:
    # A stack instead of recursion: recorded arguments may be nested deeper than Python can recurse.
    pending: list[Any] = [_Value(root)]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
            continue
        value = item.value
        if isinstance(value, dict):
            pending.extend(reversed(_members(value)))
        elif isinstance(value, (list, tuple)):
            pending.extend(reversed(_items(value)))
        else:
            yield _scalar(value)


class _Value:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _members(mapping: dict[Any, Any]) -> list[Any]:
    parts: list[Any] = []
    for key, value in mapping.items():
        name = key if isinstance(key, str) else _scalar(key)
        parts += [("," if parts else "{") + json_string(name) + ":", _Value(value)]
    return [*parts, "}"] if parts else ["{}"]


def _items(values: list[Any] | tuple[Any, ...]) -> list[Any]:
    parts: list[Any] = []
    for value in values:
        parts += ["," if parts else "[", _Value(value)]
    return [*parts, "]"] if parts else ["[]"]


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, (int, float)):
        number = es_number(value)
        return number if number[-1].isdigit() else "null"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def json_string(text: str) -> str:
    """Quote a string; lone surrogates become `\\udXXX`, other non-ASCII stays."""
    encoded: str = quoted(text)
    return encoded if encoded.isascii() else _LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", encoded)


def two_decimals(value: float) -> str:
    """The exact value rounded to hundredths, exact ties upward: 0.375 gives `0.38`, 1.005 gives `1.00`."""
    return fixed(value, 2)


def one_decimal(value: float) -> str:
    """The exact value rounded to tenths, exact ties upward."""
    return fixed(value, 1)


def fixed(value: float, places: int) -> str:
    """The exact value with `places` decimals, exact ties upward; `NaN`, `Infinity` and `-Infinity` as they are."""
    if not math.isfinite(value):
        return es_number(value)
    scaled = (2 * Fraction(value) * 10**places + 1) // 2
    digits = f"{abs(scaled):0{places + 1}}"
    sign = "-" if scaled < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def signed(value: float, places: int) -> str:
    """Like `fixed`, with a plus where there is no minus: a difference. What rounds to nothing is `+0.00`."""
    text = fixed(value, places)
    return text if text.startswith("-") else f"+{text}"
