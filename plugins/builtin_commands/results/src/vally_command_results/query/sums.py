"""Metrics that the database can sum up itself, for questions over very many outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, case, func

from vally_command_results.query.metrics import quantile
from vally_command_results.store.schema import outcomes, tool_calls

Parts = tuple[ColumnElement[Any], ColumnElement[Any] | None]
"""Numerator and denominator; without one the numerator is the value."""


def _count(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0))


def _mean(name: str, condition: ColumnElement[bool] | None = None) -> Parts:
    column: ColumnElement[Any] = outcomes.c[name]
    chosen = column if condition is None else case((condition, column), else_=None)
    return func.sum(chosen), func.count(chosen)


def _sum(name: str, condition: ColumnElement[bool] | None = None) -> Parts:
    column: ColumnElement[Any] = outcomes.c[name]
    return func.sum(column if condition is None else case((condition, column), else_=None)), None


_passed = outcomes.c.verdict == "pass"
_graded = outcomes.c.verdict.in_(("pass", "fail"))
_ran = outcomes.c.status != "skipped"

PARTS: Mapping[str, Parts] = {
    "pass_rate": (_count(_passed), _count(_graded)),
    "error_rate": (_count(outcomes.c.verdict == "error"), _count(_ran)),
    "skipped_rate": (_count(outcomes.c.status == "skipped"), func.count()),
    "duration_ms": _mean("duration_ms", _ran),
    "wall_time_ms": _mean("wall_time_ms"),
    "turns": _mean("turn_count"),
    "tool_calls": _mean("tool_call_count"),
    "agent_errors": _mean("agent_error_count"),
    "skill_activations": _mean("skill_activation_count"),
    "model_calls": _mean("model_calls"),
    "input_tokens": _mean("input_tokens"),
    "output_tokens": _mean("output_tokens"),
    "total_tokens": _mean("total_tokens"),
    "cache_read_tokens": _mean("cache_read_tokens"),
    "cache_write_tokens": _mean("cache_write_tokens"),
    "total_tokens_sum": _sum("total_tokens"),
    "total_duration_ms": _sum("duration_ms", _ran),
    "outcome_count": (func.count(), None),
}
"""Metrics of `METRICS` whose value follows from sums that every database makes alike."""

Listed = tuple[ColumnElement[Any], ColumnElement[bool], Callable[[Sequence[float]], float | None]]
"""A column, which of its values count, and what becomes of them."""


def _total(values: Sequence[float]) -> float | None:
    # Sums of fractions made by databases differ in their last digits.
    return math.fsum(values) if values else None


def _average(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _cost(unit: str) -> Listed:
    return outcomes.c.cost_amount, outcomes.c.cost_unit == unit, _total


VALUES: Mapping[str, Listed] = {
    "score": (outcomes.c.score, _graded, _average),
    "duration_p50_ms": (outcomes.c.duration_ms, _ran, partial(quantile, share=0.5)),
    "duration_p95_ms": (outcomes.c.duration_ms, _ran, partial(quantile, share=0.95)),
    "cost_usd": _cost("usd"),
    "cost_aiu": _cost("aiu"),
}
"""Metrics that need the values of one column, but nothing else of the outcomes."""


OF_CALLS: Mapping[str, Parts] = {
    "tool_error_rate": (_count(tool_calls.c.success.is_(False)), func.count(tool_calls.c.success)),
}
"""Metrics whose value follows from sums over `calls_with_outcomes`."""


def value_of(numerator: Any, denominator: Any, has_denominator: bool) -> float | None:
    """The value of a metric from its sums; None when nothing contributed."""
    if numerator is None:
        return None
    if not has_denominator:
        return float(numerator)
    return float(numerator) / float(denominator) if denominator else None
