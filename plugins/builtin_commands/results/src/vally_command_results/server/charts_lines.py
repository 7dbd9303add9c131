"""Charts over time, of tool calls in a trial, and of an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from vally import signed
from vally_command_results.server.charts import Chart, box, label, line, svg, text, ticks
from vally_command_results.server.charts_run import tick_words
from vally_command_results.server.pages import numbers
from vally_command_results.server.pages.text import name

WIDTH, LEFT, TOP, HEIGHT, LABELS = 900, 70, 14, 260, 190
SHAPES = 4
STYLES = 6
MAX_DRAWN = 8
"""More lines than this cannot be told apart; the table has all."""


def trend_chart(document: Mapping[str, Any], title: str) -> Chart | None:
    """A line per series over the runs in order of time; None without values."""
    unit = document["metric"]["unit"]
    every = [point for item in document["series"] for point in item["points"]]
    runs = sorted({(point["startedAt"] or "", point["runId"]) for point in every})
    places = {run_id: place for place, (_, run_id) in enumerate(runs)}
    values = [point["value"] for point in every if point["value"] is not None]
    if not values:
        return None
    low, high = (0.0, 1.0) if unit == "ratio" else (0.0, max(values) * 1.08 or 1.0)
    plot = _Plot(low, high, len(runs))
    marks = [*_grid(plot, unit), *_dates(plot, runs)]
    drawn = document["series"][:MAX_DRAWN]
    if len(drawn) == 1 and drawn[0]["threshold"] is not None and document["metric"]["id"] in ("pass_rate", "score"):
        marks += _threshold(plot, drawn[0]["threshold"])
    for place, item in enumerate(drawn):
        marks += _series(plot, item, place, places, unit)
    marks += _end_labels(plot, drawn)
    description = "; ".join(_in_words(item, unit) for item in drawn)
    picture = svg(title, description, WIDTH, TOP + HEIGHT + 34, marks)
    columns = ("Run", *(name(item["label"], 40) for item in drawn))
    return Chart(picture, title, description, columns, tuple(_rows(drawn, runs, unit)))


class _Plot:
    """Where a value of a run lies."""

    def __init__(self, low: float, high: float, runs: int) -> None:
        self.low, self.high, self.runs = low, high, runs
        self.right = WIDTH - LABELS

    def x(self, place: int) -> float:
        """Across: the place of a run."""
        return LEFT + 14 + (self.right - LEFT - 28) * (place / (self.runs - 1) if self.runs > 1 else 0.5)

    def y(self, value: float) -> float:
        """Down: a value."""
        return TOP + HEIGHT * (1 - (value - self.low) / (self.high - self.low))


def _grid(plot: _Plot, unit: str) -> list[str]:
    marks = []
    values = ticks(plot.low, plot.high)
    for value, words in zip(values, tick_words(values, unit), strict=True):
        y = plot.y(value)
        marks.append(line(LEFT, y, plot.right, y, "grid"))
        marks.append(text(LEFT - 8, y + 4, words, "tick", "end"))
    return marks


def _dates(plot: _Plot, runs: Sequence[tuple[str, str]]) -> list[str]:
    step = max(1, -(-len(runs) // 7))
    shown = [(place, moment) for place, (moment, _) in enumerate(runs) if place % step == 0]
    return [text(plot.x(place), TOP + HEIGHT + 22, moment[:10], "tick", "middle") for place, moment in shown]


def _threshold(plot: _Plot, value: float) -> list[str]:
    y = plot.y(value)
    words = f"threshold {numbers.ratio(value)}"
    return [line(LEFT, y, plot.right, y, "threshold"), text(plot.right + 10, y + 4, words, "mark threshold-text")]


def _series(plot: _Plot, item: Mapping[str, Any], place: int, places: Mapping[str, int], unit: str) -> list[str]:
    style = f"series-{place % STYLES}"
    measured = (point for point in item["points"] if point["value"] is not None)
    points = sorted(measured, key=lambda point: places[point["runId"]])
    spots = [(plot.x(places[point["runId"]]), plot.y(point["value"])) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    marks = [f'<polyline class="trend {style} dash-{place // STYLES}" points="{path}"/>']
    for point, (x, y) in zip(points, spots, strict=True):
        partial = ", partial run" if point["partial"] else ""
        day = (point["startedAt"] or "")[:16].replace("T", " ")
        words = f"{name(item['label'], 60)}, {day}: {numbers.measured(point['value'], unit)}"
        words += f" of {point['outcomeCount']} trials{partial}"
        kind = f"point {style}{' hollow' if point['partial'] else ''}"
        # No link: a picture may hold none; the table of the same values links to the runs.
        shape = _shape(place % SHAPES, x, y)
        marks.append(f'<path class="{kind}" d="{shape}"><title>{escape(words)}</title></path>')
    return marks


def _shape(kind: int, x: float, y: float) -> str:
    if kind == 0:
        return f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
    if kind == 1:
        return f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"
    if kind == 2:
        return f"M{x:.1f} {y - 5:.1f}l5 9h-10z"
    return f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"


def _end_labels(plot: _Plot, drawn: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names beside the last points, pushed apart where they would lie on each other."""
    wanted = []
    for place, item in enumerate(drawn):
        values = _values(item)
        if values:
            wanted.append((plot.y(values[-1]), place, item["label"]))
    ends: list[float] = []
    for y, _, _ in sorted(wanted):
        ends.append(max(y + 4, ends[-1] + 17) if ends else y + 4)
    excess = max(0.0, ends[-1] - TOP - HEIGHT) if ends else 0.0
    marks = []
    for end, (_, place, words) in zip(ends, sorted(wanted), strict=True):
        style = f"series-{place % STYLES}"
        marks.append(f'<path class="point {style}" d="{_shape(place % SHAPES, plot.right + 16, end - excess - 4)}"/>')
        marks.append(label(plot.right + 28, end - excess, words, "name", "start", 22))
    return marks


def _values(item: Mapping[str, Any]) -> list[float]:
    """The values of a series in order of time."""
    ordered = sorted(item["points"], key=lambda point: (point["startedAt"] or "", point["runId"]))
    return [point["value"] for point in ordered if point["value"] is not None]


def _in_words(item: Mapping[str, Any], unit: str) -> str:
    values = _values(item)
    if not values:
        return f"{name(item['label'], 40)}: no value"
    return (
        f"{name(item['label'], 40)}: from {numbers.measured(values[0], unit)} to {numbers.measured(values[-1], unit)}"
    )


def _rows(drawn: Sequence[Mapping[str, Any]], runs: Sequence[tuple[str, str]], unit: str) -> list[tuple[str, ...]]:
    by_run = [{point["runId"]: point["value"] for point in item["points"]} for item in drawn]
    return [
        (moment[:16].replace("T", " "), *(numbers.measured(values.get(run_id), unit) for values in by_run))
        for moment, run_id in runs
    ]


def call_strip(calls: Sequence[tuple[int | None, int | None, str, bool | None]]) -> Markup:
    """Tool calls over the time of a trial: offset and duration in ms, name, success. Empty when no time is known."""
    timed = [(start, took or 0, tool, success) for start, took, tool, success in calls if start is not None]
    if not timed:
        return Markup("")
    end = max(start + took for start, took, _, _ in timed) or 1
    lanes: list[float] = []
    marks: list[str] = []
    for start, took, tool, success in timed:
        x, width = 940 * start / end, max(3.0, 940 * took / end)
        lane = next((place for place, busy in enumerate(lanes) if busy <= x), len(lanes))
        lane = min(lane, 5)
        lanes[lane:] = [x + width, *lanes[lane + 1 :]]
        state = "failed" if success is False else "open" if success is None else "good"
        words = f"{name(tool, 60)}: {numbers.duration(start)} in, took {numbers.duration(took)}"
        marks.append(
            box(x, 4 + 14 * lane, width, 11, f"call {state}", f"{words}{', failed' if state == 'failed' else ''}")
        )
    height = 8 + 14 * len(lanes)
    marks.append(line(0, height, 940, height, "axis"))
    for value in ticks(0, end, 6):
        anchor = "start" if value == 0 else "end" if value > 0.96 * end else "middle"
        marks.append(text(940 * value / end, height + 15, numbers.duration(value), "tick", anchor))
    failed = sum(success is False for _, _, _, success in timed)
    words = f"{len(timed)} calls in {numbers.duration(end)}, {failed} failed"
    return svg("Tool calls over time", words, 940, height + 20, marks)


def interval(mean: float | None, low: float | None, high: float | None) -> Markup:
    """A mean with its interval on the axis from −1 (baseline better) to +1 (treatment better)."""
    if mean is None:
        return Markup("")

    def x(value: float) -> float:
        return 20 + 480 * (min(1.0, max(-1.0, value)) + 1) / 2

    marks = [line(20, 30, 500, 30, "axis"), line(260, 12, 260, 48, "zero")]
    marks += [text(x(value), 62, f"{value:+g}" if value else "0", "tick", "middle") for value in (-1, -0.5, 0, 0.5, 1)]
    marks += [text(20, 14, "baseline better", "tick"), text(500, 14, "treatment better", "tick", "end")]
    words = f"mean {signed(mean, 2)}"
    if low is not None and high is not None:
        marks += [line(x(low), 30, x(high), 30, "interval"), line(x(low), 23, x(low), 37, "interval")]
        marks.append(line(x(high), 23, x(high), 37, "interval"))
        words += f", 95 % interval {signed(low, 2)} to {signed(high, 2)}"
    marks.append(f'<circle class="mean" cx="{x(mean):.1f}" cy="30" r="7"><title>{escape(words)}</title></circle>')
    return svg("Mean score of the treatment against the baseline", words, 520, 70, marks)
