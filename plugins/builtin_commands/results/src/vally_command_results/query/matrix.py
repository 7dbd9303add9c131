"""The score matrix: outcomes of a run by two of their traits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from vally_command_results.query.errors import invalid
from vally_command_results.query.filters import OutcomeFilter
from vally_command_results.query.joins import outcomes_with_evals, tags_with_outcomes
from vally_command_results.query.metrics import METRICS, Metric, by_stimulus, graded
from vally_command_results.query.runs import require_run, siblings
from vally_command_results.store.schema import evals, outcome_tags, outcomes, tool_calls

MAX_ROWS, MAX_COLUMNS = 2000, 50
_BASE = (
    outcomes.c.id,
    outcomes.c.run_id,
    outcomes.c.eval_id,
    outcomes.c.stimulus,
    outcomes.c.model,
    outcomes.c.verdict,
)


def metric_rows(
    connection: Connection,
    metric: Metric,
    conditions: Iterable[ColumnElement[bool]],
    further: Sequence[ColumnElement[Any]] = (),
) -> Sequence[Any]:
    """The outcomes of some conditions with the columns that a metric needs, joined with their evals."""
    return connection.execute(_metric_query(metric, list(conditions), further)).all()


def _metric_query(
    metric: Metric, conditions: Sequence[ColumnElement[bool]], further: Sequence[ColumnElement[Any]]
) -> Select[Any]:
    joined: Any = outcomes_with_evals
    columns: list[ColumnElement[Any]] = [*_BASE, evals.c.name.label("eval_name"), *further]
    names = [name for name in metric.columns if name not in ("answered_calls", "failed_calls")]
    columns += [outcomes.c[name] for name in names]
    if "answered_calls" in metric.columns:
        wanted = select(outcomes.c.id).select_from(outcomes_with_evals).where(*conditions)
        calls = (
            select(
                tool_calls.c.outcome_id,
                func.count(tool_calls.c.success).label("answered_calls"),
                func.sum(case((tool_calls.c.success.is_(False), 1), else_=0)).label("failed_calls"),
            )
            .where(tool_calls.c.outcome_id.in_(wanted))
            .group_by(tool_calls.c.outcome_id)
            .subquery()
        )
        joined = joined.outerjoin(calls, calls.c.outcome_id == outcomes.c.id)
        columns += [calls.c.answered_calls, calls.c.failed_calls]
    return select(*columns).select_from(joined).where(*conditions).order_by(outcomes.c.run_id, outcomes.c.seq)


def require_metric(name: str) -> Metric:
    """A metric by its id; raises `QueryError`."""
    metric = METRICS.get(name)
    if metric is None:
        raise invalid("metric", f"no metric '{name}'; there are {', '.join(METRICS)}")
    return metric


Place = tuple[str, str, str | None]
"""Key, label and group of a row or column."""


def matrix(
    connection: Connection,
    run_id: str,
    *,
    metric: str = "pass_rate",
    rows: str = "stimulus",
    columns: str = "model",
    chosen: OutcomeFilter | None = None,
) -> dict[str, Any]:
    """The score matrix of a run; the columns of variants cover the whole experiment."""
    from vally_command_results.query.graders import grader_matrix

    run = require_run(connection, run_id)
    measured = require_metric(metric)
    ids = [item["id"] for item in siblings(connection, run)] if columns == "variant" and run.group_id else [run_id]
    conditions = [outcomes.c.run_id.in_(ids), *(chosen or OutcomeFilter()).conditions()]
    if rows in ("grader", "graderType"):
        if metric not in ("pass_rate", "score"):
            raise invalid("metric", f"rows of graders have pass_rate and score only, not {metric}")
        return grader_matrix(connection, measured, conditions, rows, columns)
    further = (outcomes.c.variant, outcomes.c.total_trials, outcomes.c.status)
    found = metric_rows(connection, measured, conditions, _without(further, measured))
    tags = _tags(connection, conditions, rows.removeprefix("tag:")) if rows.startswith("tag:") else None
    cells: defaultdict[tuple[Place, Place], list[Any]] = defaultdict(list)
    for row in found:
        column = column_place(columns, row)
        for place in _row_places(rows, row, tags):
            cells[place, column].append(row)
    return matrix_document(measured, cells, lambda group: (measured.compute(group), len(group), _flags(group)))


def _without(columns: Sequence[Any], metric: Metric) -> list[Any]:
    return [column for column in columns if column.name not in metric.columns]


def _tags(connection: Connection, conditions: Iterable[ColumnElement[bool]], key: str) -> dict[str, list[str]]:
    query = (
        select(outcome_tags.c.outcome_id, outcome_tags.c.value)
        .select_from(tags_with_outcomes)
        .where(*conditions, outcome_tags.c.key == key)
    )
    found: dict[str, list[str]] = {}
    for outcome_id, value in connection.execute(query.order_by(outcome_tags.c.value)):
        found.setdefault(outcome_id, []).append(value)
    return found


def _row_places(rows: str, row: Any, tags: Mapping[str, list[str]] | None) -> list[Place]:
    if tags is not None:
        return [(value, value, None) for value in tags.get(row.id, [])]
    if rows == "eval":
        return [(row.eval_name, row.eval_name, None)]
    return [(f"{row.eval_name}::{row.stimulus}", row.stimulus, row.eval_name)]


def column_place(columns: str, row: Any) -> Place:
    """The column of an outcome."""
    value = {"model": row.model, "variant": row.variant, "eval": row.eval_name}[columns] or "(none)"
    return value, value, None


def _flags(group: Sequence[Any]) -> list[str]:
    flags = []
    if any(0 < passed < count for count, passed in by_stimulus(group).values()):
        flags.append("flaky")
    if any(row.verdict == "error" for row in group):
        flags.append("errors")
    planned = {(row.run_id, row.eval_id, row.stimulus, row.model): row.total_trials for row in group}
    if sum(map(graded, group)) < sum(planned.values()):
        flags.append("partial")
    return [*flags, "low_count"] if len(group) == 1 else flags


def matrix_document(
    metric: Metric,
    cells: Mapping[tuple[Place, Place], Sequence[Any]],
    make: Callable[[Sequence[Any]], tuple[float | None, int, list[str]]],
) -> dict[str, Any]:
    """A matrix with rows in order of their first outcome and sorted columns."""
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = sorted({column for _, column in cells})
    kept_rows, kept_columns = set(rows[:MAX_ROWS]), set(columns[:MAX_COLUMNS])
    found = []
    for (row, column), group in cells.items():
        if row in kept_rows and column in kept_columns:
            value, count, flags = make(group)
            found.append({"row": row[0], "column": column[0], "value": value, "outcomeCount": count, "flags": flags})
    return {
        "metric": metric.head(),
        "rows": [{"key": key, "label": label, "group": group} for key, label, group in rows[:MAX_ROWS]],
        "columns": [{"key": key, "label": label} for key, label, _ in columns[:MAX_COLUMNS]],
        "cells": found,
        "truncated": len(rows) > MAX_ROWS or len(columns) > MAX_COLUMNS,
    }
