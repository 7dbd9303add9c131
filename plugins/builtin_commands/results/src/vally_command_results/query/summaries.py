"""What one run amounts to: models ranked, tools called, how long trials took."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select

from vally_command_results.query.filters import OutcomeFilter
from vally_command_results.query.joins import calls_with_outcomes, outcomes_with_evals
from vally_command_results.query.matrix import metric_rows
from vally_command_results.query.metrics import METRICS, quantile
from vally_command_results.query.runs import require_run
from vally_command_results.store.schema import evals, outcomes, tool_calls


def ranking(connection: Connection, run_id: str) -> dict[str, Any]:
    """The models of a run by pass rate, then by duration."""
    require_run(connection, run_id)
    columns = (
        "status",
        "score",
        "duration_ms",
        "turn_count",
        "tool_call_count",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "cost_amount",
        "cost_unit",
    )
    rows = metric_rows(
        connection, METRICS["outcome_count"], [outcomes.c.run_id == run_id], [outcomes.c[name] for name in columns]
    )
    groups: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row.model or "(none)"].append(row)
    models = sorted((_ranked(name, group) for name, group in groups.items()), key=_rank_order)
    previous: tuple[Any, ...] | None = None
    for place, item in enumerate(models, start=1):
        equal = (item["passRate"], item["meanDurationMs"])
        item["rank"] = models[place - 2]["rank"] if equal == previous else place
        previous = equal
    return {"models": models}


def _rank_order(item: Mapping[str, Any]) -> tuple[Any, ...]:
    rate, duration = item["passRate"], item["meanDurationMs"]
    return rate is None, -(rate or 0), math.inf if duration is None else duration, item["model"]


def _ranked(name: str, rows: Sequence[Any]) -> dict[str, Any]:
    def value(metric: str) -> float | int | None:
        return METRICS[metric].compute(rows)

    def total(column: str) -> int:
        return sum(getattr(row, column) or 0 for row in rows)

    costs = {unit: amount for unit in ("usd", "aiu") if (amount := value(f"cost_{unit}")) is not None}
    cost = [{"unit": unit, "amount": amount} for unit, amount in costs.items()]
    return {
        "rank": 0,
        "model": name,
        "outcomeCount": len(rows),
        "passRate": value("pass_rate"),
        "meanScore": value("score"),
        "meanDurationMs": value("duration_ms"),
        "meanTurns": value("turns"),
        "meanToolCalls": value("tool_calls"),
        "inputTokens": total("input_tokens"),
        "outputTokens": total("output_tokens"),
        "totalTokens": total("total_tokens"),
        "errorCount": sum(row.verdict == "error" for row in rows),
        "cost": cost or None,
    }


def tools(connection: Connection, run_id: str, chosen: OutcomeFilter) -> dict[str, Any]:
    """The tools that agents called in a run, most used first."""
    require_run(connection, run_id)
    failed = func.sum(case((tool_calls.c.success.is_(False), 1), else_=0))
    succeeded = func.sum(case((tool_calls.c.success.is_(True), 1), else_=0))
    simulated = func.sum(case((tool_calls.c.simulated, 1), else_=0))
    query = (
        select(
            tool_calls.c.tool_name,
            func.count().label("calls"),
            func.count(tool_calls.c.outcome_id.distinct()).label("trials"),
            failed.label("failed"),
            succeeded.label("succeeded"),
            simulated.label("simulated"),
            func.sum(tool_calls.c.duration_ms).label("duration"),
            func.count(tool_calls.c.duration_ms).label("timed"),
        )
        .select_from(calls_with_outcomes)
        .where(outcomes.c.run_id == run_id, *chosen.conditions())
        .group_by(tool_calls.c.tool_name)
    )
    rows = sorted(connection.execute(query), key=lambda row: (-row.calls, row.tool_name))
    return {"tools": [_tool(row) for row in rows]}


def _tool(row: Any) -> dict[str, Any]:
    answered = row.failed + row.succeeded
    return {
        "name": row.tool_name,
        "callCount": row.calls,
        "outcomeCount": row.trials,
        "errorCount": row.failed,
        "successRate": row.succeeded / answered if answered else None,
        "meanPerOutcome": row.calls / row.trials,
        "meanDurationMs": round(row.duration / row.timed) if row.timed else None,
        "simulatedCount": row.simulated,
    }


DISTRIBUTED: Mapping[str, str] = {
    "duration_ms": "duration_ms",
    "wall_time_ms": "wall_time_ms",
    "score": "score",
    "turns": "turn_count",
    "tool_calls": "tool_call_count",
    "total_tokens": "total_tokens",
}


def distribution(
    connection: Connection, run_id: str, *, metric: str = "duration_ms", bins: int = 20, group_by: str = "model"
) -> dict[str, Any]:
    """A histogram of a run with equal bins from the least to the greatest value; the last bin has its upper end too."""
    require_run(connection, run_id)
    column = outcomes.c[DISTRIBUTED[metric]]
    conditions = [outcomes.c.run_id == run_id, column.is_not(None), outcomes.c.status != "skipped"]
    key = {"model": outcomes.c.model, "eval": evals.c.name, "verdict": outcomes.c.verdict}[group_by]
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for name, value in connection.execute(select(key, column).select_from(outcomes_with_evals).where(*conditions)):
        groups[name or "(none)"].append(value)
    every = [value for values in groups.values() for value in values]
    if not every:
        return {"metric": METRICS[metric].head(), "bins": [], "series": []}
    low, high = min(every), max(every)
    count = bins if high > low else 1
    edges = [low + (high - low) * place / count for place in range(count)] + [high]
    return {
        "metric": METRICS[metric].head(),
        "bins": [{"from": edges[place], "to": edges[place + 1]} for place in range(count)],
        "series": [_series(name, values, low, high, count) for name, values in sorted(groups.items())],
    }


def _series(name: str, values: Sequence[float], low: float, high: float, bins: int) -> dict[str, Any]:
    counts = [0] * bins
    for value in values:
        place = min(bins - 1, int((value - low) / (high - low) * bins)) if high > low else 0
        counts[place] += 1
    return {
        "key": name,
        "counts": counts,
        "p50": quantile(values, 0.5),
        "p95": quantile(values, 0.95),
        "min": min(values),
        "max": max(values),
    }
