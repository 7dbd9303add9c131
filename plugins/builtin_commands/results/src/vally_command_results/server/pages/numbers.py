"""Figures as pages show them; what was not measured is a dash, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vally import fixed, percent, two_decimals

DASH = "–"


def duration(milliseconds: float | None) -> str:
    """`740 ms`, `8.3 s`, `2 m 41 s`, `1 h 02 m`."""
    if milliseconds is None:
        return DASH
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours else f"{minutes} m {seconds:02d} s"


def whole(number: float | None) -> str:
    """A count with separators of thousands."""
    return DASH if number is None else f"{round(number):,}"


def short(number: float | None) -> str:
    """`812`, `31.2k`, `4.1M`."""
    if number is None:
        return DASH
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / (1000 if unit == 'k' else size):.1f}{unit}"
    if float(number).is_integer() or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 0.095 else f"{number:.1g}"


def ratio(share: float | None) -> str:
    """A share in percent."""
    return DASH if share is None else percent(share)


def score(value: float | None) -> str:
    """A score with two decimals."""
    return DASH if value is None else two_decimals(value)


def size(count: int) -> str:
    """A number of bytes."""
    for limit, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} B"


def money(amount: float | None, unit: str) -> str:
    """An amount in dollars or in units of the provider."""
    if amount is None:
        return DASH
    shown = fixed(amount, 2 if abs(amount) >= 1 else 4)
    return f"${shown}" if unit == "usd" else f"{shown} {unit.upper() if unit == 'aiu' else unit}"


def costs(items: Iterable[Mapping[str, Any]] | None) -> str:
    """All costs of a run; each unit for itself."""
    shown = [money(item.get("amount"), str(item.get("unit"))) for item in items or []]
    return " + ".join(shown) or DASH


def measured(value: float | None, unit: str) -> str:
    """A value of a metric in its unit."""
    if value is None:
        return DASH
    if unit == "ratio":
        return ratio(value)
    if unit == "ms":
        return duration(value)
    if unit in ("usd", "aiu"):
        return money(value, unit)
    return short(value)


def change(value: float | None, unit: str) -> str:
    """A difference with its sign; shares differ by points."""
    if value is None:
        return DASH
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    amount = abs(value)
    if unit == "ratio":
        return f"{sign}{fixed(100 * amount, 1)} pp"
    return f"{sign}{measured(amount, unit)}"


def signed(value: float | None) -> str:
    """A score between −1 and +1 with its sign."""
    if value is None:
        return DASH
    shown = fixed(abs(value), 2)
    return shown if float(shown) == 0 else f"{'+' if value > 0 else '−'}{shown}"
