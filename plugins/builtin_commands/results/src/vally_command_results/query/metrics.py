"""The metrics that outcomes are summed up by."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally import pass_at_k, pass_to_the_k

Row = Any
"""A row with the columns that `Metric.columns` names, and `eval_id`, `stimulus`, `model`, `verdict`."""
Compute = Callable[[Sequence[Row]], float | int | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; `compute` gives None when no row contributes."""

    id: str
    label: str
    unit: str
    direction: str
    aggregation: str
    description: str
    columns: tuple[str, ...]
    compute: Compute

    def head(self) -> dict[str, str]:
        """How answers name it."""
        return {"id": self.id, "unit": self.unit, "direction": self.direction, "aggregation": self.aggregation}

    def document(self) -> dict[str, str]:
        """How the list of metrics describes it."""
        return {
            "id": self.id,
            "label": self.label,
            "unit": self.unit,
            "direction": self.direction,
            "aggregation": self.aggregation,
            "description": self.description,
        }

    def better(self, delta: float) -> bool | None:
        """Whether a change is for the better; None for none and for metrics without a direction."""
        if self.direction == "neutral" or abs(delta) < 1e-12:
            return None
        return (delta > 0) == (self.direction == "higher_is_better")


def share(rows: Sequence[Row], counts: Callable[[Row], bool], among: Callable[[Row], bool]) -> float | None:
    """Share of the rows that count."""
    chosen = [row for row in rows if among(row)]
    return sum(map(counts, chosen)) / len(chosen) if chosen else None


def graded(row: Row) -> bool:
    """Whether an outcome has a verdict of its graders."""
    return row.verdict in ("pass", "fail")


def _ran(row: Row) -> bool:
    return bool(row.status != "skipped")


def _pass_rate(rows: Sequence[Row]) -> float | None:
    return share(rows, lambda row: row.verdict == "pass", graded)


def _values(rows: Iterable[Row], column: str, among: Callable[[Row], bool]) -> list[float]:
    return [value for row in rows if among(row) and (value := getattr(row, column)) is not None]


def _mean(column: str, among: Callable[[Row], bool] = lambda _: True) -> Compute:
    def compute(rows: Sequence[Row]) -> float | None:
        values = _values(rows, column, among)
        return math.fsum(values) / len(values) if values else None

    return compute


def _sum(column: str, among: Callable[[Row], bool] = lambda _: True) -> Compute:
    def compute(rows: Sequence[Row]) -> float | int | None:
        values = _values(rows, column, among)
        if not values:
            return None
        return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)

    return compute


def quantile(values: Sequence[float], share: float) -> float | None:
    """A quantile with linear interpolation between order statistics; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _quantile(column: str, share: float) -> Compute:
    return lambda rows: quantile(_values(rows, column, _ran), share)


def _cost(unit: str) -> Compute:
    def compute(rows: Sequence[Row]) -> float | None:
        amounts = [row.cost_amount for row in rows if row.cost_unit == unit and row.cost_amount is not None]
        return math.fsum(amounts) if amounts else None

    return compute


def by_stimulus(rows: Iterable[Row]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Verdict-bearing and passing trials of each stimulus and model."""
    counts: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if graded(row):
            pair = counts[(row.eval_id, row.stimulus, row.model)]
            pair[0] += 1
            pair[1] += row.verdict == "pass"
    return {key: (pair[0], pair[1]) for key, pair in counts.items()}


Pair = tuple[int, int]
"""Verdict-bearing and passing trials of one stimulus with one model."""


def _flaky_rate(pairs: Iterable[Pair]) -> float | None:
    repeated = [pair for pair in pairs if pair[0] >= 2]
    return sum(0 < passed < count for count, passed in repeated) / len(repeated) if repeated else None


def _mean_of(value: Callable[[int, int], float]) -> Callable[[Iterable[Pair]], float | None]:
    def compute(pairs: Iterable[Pair]) -> float | None:
        values = [value(count, passed) for count, passed in pairs]
        return math.fsum(values) / len(values) if values else None

    return compute


OVER_STIMULI: Mapping[str, Callable[[Iterable[Pair]], float | None]] = {
    "flaky_rate": _flaky_rate,
    "pass_at_k": _mean_of(lambda count, passed: pass_at_k(count, passed, count)),
    "pass_to_the_k": _mean_of(lambda count, passed: pass_to_the_k(passed / count, count)),
}
"""Metrics that follow from how many trials of each stimulus passed."""


def _over_stimuli(id: str) -> Compute:
    return lambda rows: OVER_STIMULI[id](by_stimulus(rows).values())


def _tool_error_rate(rows: Sequence[Row]) -> float | None:
    answered = sum(row.answered_calls or 0 for row in rows)
    return sum(row.failed_calls or 0 for row in rows) / answered if answered else None


_UP, _DOWN, _NEUTRAL = "higher_is_better", "lower_is_better", "neutral"
_COST = ("cost_amount", "cost_unit")


def _trajectory_mean(id: str, label: str, unit: str, direction: str, column: str, about: str) -> Metric:
    return Metric(id, label, unit, direction, "mean", about, (column,), _mean(column))


METRICS: Mapping[str, Metric] = {
    metric.id: metric
    for metric in (
        Metric("pass_rate", "Pass rate", "ratio", _UP, "rate", "Passed of the graded trials", (), _pass_rate),
        Metric(
            "error_rate",
            "Error rate",
            "ratio",
            _DOWN,
            "rate",
            "Trials that ended in an error, of those that ran",
            ("status",),
            lambda rows: share(rows, lambda row: row.verdict == "error", _ran),
        ),
        Metric(
            "skipped_rate",
            "Skipped rate",
            "ratio",
            _NEUTRAL,
            "rate",
            "Trials that did not run",
            ("status",),
            lambda rows: share(rows, lambda row: row.status == "skipped", lambda _: True),
        ),
        Metric(
            "flaky_rate",
            "Flaky rate",
            "ratio",
            _DOWN,
            "rate",
            "Stimuli with passed and failed trials",
            (),
            _over_stimuli("flaky_rate"),
        ),
        Metric(
            "score",
            "Score",
            "ratio",
            _UP,
            "mean",
            "Mean score of the graded trials",
            ("score",),
            _mean("score", graded),
        ),
        Metric(
            "pass_at_k",
            "Pass@k",
            "ratio",
            _UP,
            "mean",
            "Chance that at least one of the trials passes",
            (),
            _over_stimuli("pass_at_k"),
        ),
        Metric(
            "pass_to_the_k",
            "Pass^k",
            "ratio",
            _UP,
            "mean",
            "Chance that all of the trials pass",
            (),
            _over_stimuli("pass_to_the_k"),
        ),
        Metric(
            "duration_ms",
            "Duration",
            "ms",
            _DOWN,
            "mean",
            "Mean time of a trial",
            ("status", "duration_ms"),
            _mean("duration_ms", _ran),
        ),
        Metric(
            "duration_p50_ms",
            "Median duration",
            "ms",
            _DOWN,
            "p50",
            "Half of the trials took less",
            ("status", "duration_ms"),
            _quantile("duration_ms", 0.5),
        ),
        Metric(
            "duration_p95_ms",
            "95th percentile duration",
            "ms",
            _DOWN,
            "p95",
            "95 of 100 trials took less",
            ("status", "duration_ms"),
            _quantile("duration_ms", 0.95),
        ),
        _trajectory_mean(
            "wall_time_ms", "Agent time", "ms", _DOWN, "wall_time_ms", "Mean time of the agent in a trial"
        ),
        Metric(
            "total_duration_ms",
            "Total duration",
            "ms",
            _DOWN,
            "sum",
            "Time of all trials together",
            ("status", "duration_ms"),
            _sum("duration_ms", _ran),
        ),
        _trajectory_mean("turns", "Turns", "count", _DOWN, "turn_count", "Mean number of turns"),
        _trajectory_mean("tool_calls", "Tool calls", "count", _DOWN, "tool_call_count", "Mean number of tool calls"),
        Metric(
            "tool_error_rate",
            "Tool error rate",
            "ratio",
            _DOWN,
            "rate",
            "Tool calls without success, of those with a result",
            ("answered_calls", "failed_calls"),
            _tool_error_rate,
        ),
        _trajectory_mean("agent_errors", "Agent errors", "count", _DOWN, "agent_error_count", "Mean number of errors"),
        _trajectory_mean(
            "skill_activations",
            "Skill activations",
            "count",
            _NEUTRAL,
            "skill_activation_count",
            "Mean number of skills used",
        ),
        _trajectory_mean("model_calls", "Model calls", "count", _NEUTRAL, "model_calls", "Mean number of model calls"),
        _trajectory_mean("input_tokens", "Input tokens", "tokens", _DOWN, "input_tokens", "Mean tokens read"),
        _trajectory_mean("output_tokens", "Output tokens", "tokens", _DOWN, "output_tokens", "Mean tokens written"),
        _trajectory_mean("total_tokens", "Tokens", "tokens", _DOWN, "total_tokens", "Mean tokens"),
        _trajectory_mean(
            "cache_read_tokens", "Cached tokens read", "tokens", _NEUTRAL, "cache_read_tokens", "Mean tokens"
        ),
        _trajectory_mean(
            "cache_write_tokens", "Cached tokens written", "tokens", _NEUTRAL, "cache_write_tokens", "Mean tokens"
        ),
        Metric(
            "total_tokens_sum",
            "Total tokens",
            "tokens",
            _DOWN,
            "sum",
            "Tokens of all trials",
            ("total_tokens",),
            _sum("total_tokens"),
        ),
        Metric(
            "cost_usd", "Cost", "usd", _DOWN, "sum", "Cost of all trials that report one in usd", _COST, _cost("usd")
        ),
        Metric(
            "cost_aiu", "Cost", "aiu", _DOWN, "sum", "Cost of all trials that report one in aiu", _COST, _cost("aiu")
        ),
        Metric("outcome_count", "Trials", "count", _NEUTRAL, "sum", "Number of trials", (), len),
    )
}
