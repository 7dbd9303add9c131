"""Charts of one run: how values are distributed, and what costs most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vally_command_results.server.charts import Chart, box, label, line, svg, text, ticks
from vally_command_results.server.pages import numbers
from vally_command_results.server.pages.text import name

LEFT, PLOT, RIGHT = 150, 560, 20
STRIP, GAP, FOOT = 92, 18, 30


def histogram(document: Mapping[str, Any], title: str, unit: str, by: str) -> Chart | None:
    """One strip per series over a common axis, with lines at p50 and p95; None when nothing was measured."""
    bins, series = document["bins"], document["series"]
    if not series:
        return None
    low, high = bins[0]["from"], bins[-1]["to"]
    most = max(max(item["counts"]) for item in series)
    marks: list[str] = []
    for place, item in enumerate(series):
        marks += _strip(item, place * (STRIP + GAP), low, high, most, unit)
    foot = len(series) * (STRIP + GAP)
    values = ticks(low, high, 6)
    for value, words in zip(values, tick_words(values, unit), strict=True):
        x = _x(value, low, high)
        marks.append(line(x, foot - GAP, x, foot - GAP + 5, "axis"))
        marks.append(text(x, foot - GAP + 20, words, "tick", "middle"))
    description = "; ".join(_in_words(item, unit) for item in series)
    picture = svg(title, description, LEFT + PLOT + RIGHT, foot + FOOT - GAP + 6, marks)
    columns = (by, "Trials", "Min", "p50", "p95", "Max")
    return Chart(picture, title, description, columns, tuple(_row(item, unit) for item in series))


def tick_words(values: Sequence[float], unit: str) -> list[str]:
    """How an axis names its values; with all digits where rounded ones would be the same."""
    words = [numbers.measured(value, unit) for value in values]
    if len(set(words)) == len(words):
        return words
    return [f"{value:g} ms" if unit == "ms" else f"{value:g}" for value in values]


def _x(value: float, low: float, high: float) -> float:
    return LEFT + (PLOT * (value - low) / (high - low) if high > low else PLOT / 2)


def _strip(item: Mapping[str, Any], top: float, low: float, high: float, most: int, unit: str) -> list[str]:
    counts = item["counts"]
    floor = top + STRIP
    width = PLOT / len(counts)
    marks = [
        label(LEFT - 12, top + STRIP / 2, item["key"], "name", "end", 20),
        text(LEFT - 12, top + STRIP / 2 + 16, f"{sum(counts)} trials", "tick", "end"),
        line(LEFT, floor, LEFT + PLOT, floor, "axis"),
    ]
    step = (high - low) / len(counts)
    for place, count in enumerate(counts):
        if count:
            height = max(2.0, (STRIP - 32) * count / most)
            edges = " to ".join(numbers.measured(low + step * end, unit) for end in (place, place + 1))
            words = f"{name(item['key'])}: {count} of {edges}"
            wide = width if len(counts) > 1 else 40
            start = LEFT + place * width if len(counts) > 1 else LEFT + PLOT / 2 - 20
            marks.append(box(start + 1, floor - height, wide - 2, height, "column", words))
    # Two rows of labels, since both values may be nearly the same.
    for row, share in enumerate(("p50", "p95")):
        x = _x(item[share], low, high)
        marks.append(line(x, top + 14 * row + 4, x, floor, f"quantile {share}"))
        at_end = x > LEFT + PLOT - 90
        words = f"{share} {numbers.measured(item[share], unit)}"
        marks.append(
            text(x - 5 if at_end else x + 5, top + 14 * row + 12, words, f"mark {share}", "end" if at_end else "start")
        )
    return marks


def _in_words(item: Mapping[str, Any], unit: str) -> str:
    shown = [numbers.measured(item[key], unit) for key in ("p50", "p95")]
    return f"{name(item['key'], 40)}: median {shown[0]}, 95th percentile {shown[1]}"


def _row(item: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    values = (numbers.measured(item[key], unit) for key in ("min", "p50", "p95", "max"))
    return (name(item["key"]), numbers.whole(sum(item["counts"])), *values)


ROW = 26


def bars(title: str, entries: Sequence[tuple[str, float]], unit: str, what: str) -> Chart | None:
    """A horizontal bar for each entry, the longest first; None without entries."""
    if not entries:
        return None
    ordered = sorted(entries, key=lambda entry: (-entry[1], entry[0]))[:12]
    most = max(value for _, value in ordered) or 1.0
    left, plot = 270, 340
    marks: list[str] = []
    for place, (key, value) in enumerate(ordered):
        y = place * ROW
        shown = numbers.measured(value, unit)
        marks.append(label(left - 10, y + 17, key, "name", "end", 30))
        marks.append(box(left, y + 5, max(2.0, plot * value / most), ROW - 10, "column", f"{name(key)}: {shown}"))
        marks.append(text(left + plot * value / most + 8, y + 17, shown, "tick"))
    rest = len(entries) - len(ordered)
    description = f"most: {name(ordered[0][0], 60)} with {numbers.measured(ordered[0][1], unit)}"
    description += f"; {rest} more are not drawn" if rest else ""
    picture = svg(title, description, left + plot + 100, len(ordered) * ROW + 4, marks)
    rows = tuple((name(key), numbers.measured(value, unit)) for key, value in ordered)
    return Chart(picture, title, description, (what, "Value"), rows)
