"""Numbers as positions in a drawing; the drawings themselves are in the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vally_reporter_html.facts import TrialFacts
from vally_reporter_html.text import milliseconds

WIDTH = 640
HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 10, 30
MAX_POINTS = 1_500


@dataclass(frozen=True, slots=True)
class Point:
    """A trial of the scatter plot; `href` is the id of its details, empty when it has none."""

    x: float
    y: float
    verdict: str
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of an axis and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Trials by duration (x) and tokens (y)."""

    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    omitted: int


def scatter(trials: Sequence[tuple[TrialFacts, str, str]]) -> Scatter | None:
    """The plot of (facts, title, id of the details) of trials that ran; None for fewer than three."""
    ran = [entry for entry in trials if entry[0].verdict != "skipped" and entry[0].duration_ms > 0]
    if len(ran) < 3:
        return None
    x_ticks = _ticks(max(facts.duration_ms for facts, _, _ in ran))
    y_ticks = _ticks(max(facts.tokens for facts, _, _ in ran))
    # Every n-th of the good ones makes room for all that went wrong.
    bad = [entry for entry in ran if entry[0].is_bad][:MAX_POINTS]
    good = [entry for entry in ran if not entry[0].is_bad]
    step = max(1, math.ceil(len(good) / max(1, MAX_POINTS - len(bad))))
    shown = good[::step] + bad
    points = tuple(
        Point(_x(facts.duration_ms, x_ticks[-1]), _y(facts.tokens, y_ticks[-1]), facts.verdict, title, href)
        for facts, title, href in shown
    )
    return Scatter(
        points,
        tuple(Tick(_x(tick, x_ticks[-1]), milliseconds(tick) if tick else "0") for tick in x_ticks),
        tuple(Tick(_y(tick, y_ticks[-1]), _short(tick)) for tick in y_ticks),
        len(ran) - len(shown),
    )


def _ticks(largest: float) -> list[float]:
    """Four or five round numbers from 0 to at least the largest value."""
    if largest <= 0:
        return [0.0, 1.0]
    raw = largest / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    return [step * index for index in range(math.ceil(largest / step * 0.999) + 1)]


def _x(number: float, largest: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * number / largest, 1)


def _y(number: float, largest: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * number / largest, 1)


def _short(number: float) -> str:
    if number >= 1_000_000:
        return f"{number / 1_000_000:g}M"
    return f"{number / 1_000:g}k" if number >= 1_000 else f"{number:g}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value on a scale from 0 to 1, in percent, with its interval and the limit that it has to reach."""

    value: float
    low: float | None
    high: float | None
    limit: float | None


def bar(value: float | None, low: float | None, high: float | None, limit: float | None = None) -> Bar | None:
    """Positions for a value; None without one."""
    if value is None:
        return None
    return Bar(*(None if number is None else round(100 * number, 2) for number in (value, low, high, limit)))  # type: ignore[arg-type]  # the first is a number


def segments(parts: Sequence[tuple[str, int]]) -> list[tuple[str, int, float, float]]:
    """(name, milliseconds, start, width) of parts of a whole, in percent of it; nothing for a whole of 0."""
    total = sum(part for _, part in parts)
    made, position = [], 0.0
    for label, part in parts:
        if total and part > 0:
            width = 100 * part / total
            made.append((label, part, round(position, 2), round(width, 2)))
            position += width
    return made
