"""A metric over runs, and comparisons that a judge made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from vally_command_results.query.errors import not_found
from vally_command_results.query.filters import OutcomeFilter, RunFilter
from vally_command_results.query.matrix import require_metric
from vally_command_results.query.paging import PageRequest, SortKey, page_of
from vally_command_results.query.points import Point, points
from vally_command_results.query.shapes import comparison_document
from vally_command_results.store.schema import comparisons, evals, outcomes, runs

MAX_SERIES = 20
MAX_RUNS = 200


def trends(
    connection: Connection,
    chosen: RunFilter,
    outcome_filter: OutcomeFilter,
    *,
    metric: str = "pass_rate",
    group_by: str = "eval",
    limit: int = MAX_RUNS,
) -> dict[str, Any]:
    """One series per group over the newest matching runs, in order of time."""
    measured = require_metric(metric)
    newest = select(runs.c.id, runs.c.started_at, runs.c.partial).where(*chosen.conditions())
    rows = connection.execute(newest.order_by(runs.c.started_at.desc(), runs.c.id).limit(limit)).all()
    known = {row.id: row for row in reversed(rows)}
    key = {
        "eval": evals.c.name,
        "stimulus": outcomes.c.stimulus,
        "model": outcomes.c.model,
        "variant": outcomes.c.variant,
    }
    label = key[group_by].label("group_key")
    conditions = [outcomes.c.run_id.in_(list(known)), *outcome_filter.conditions()]
    groups = points(connection, measured, conditions, label)
    ordered = sorted(groups.items(), key=lambda item: (-sum(count for _, count in item[1].values()), item[0]))
    thresholds = _thresholds(connection, list(known)) if group_by == "eval" else {}
    series = [_series(name, per_run, known, thresholds) for name, per_run in ordered[:MAX_SERIES]]
    return {"metric": measured.head(), "truncated": len(ordered) > MAX_SERIES, "series": series}


def _series(
    name: str, per_run: Mapping[str, Point], known: Mapping[str, Any], thresholds: Mapping[str, float]
) -> dict[str, Any]:
    found = [
        {
            "runId": run_id,
            "startedAt": run.started_at,
            "value": per_run[run_id][0],
            "outcomeCount": per_run[run_id][1],
            "partial": run.partial,
        }
        for run_id, run in known.items()
        if run_id in per_run
    ]
    return {"key": name, "label": name, "threshold": thresholds.get(name), "points": found}


def _thresholds(connection: Connection, run_ids: Sequence[str]) -> dict[str, float]:
    """The newest threshold of each eval."""
    query = select(evals.c.name, evals.c.threshold).join(runs, runs.c.id == evals.c.run_id)
    chosen = query.where(evals.c.run_id.in_(run_ids), evals.c.threshold.is_not(None))
    rows = connection.execute(chosen.order_by(runs.c.started_at, runs.c.id, evals.c.id))
    return {row.name: row.threshold for row in rows}


def list_comparisons(connection: Connection, groups: Sequence[str], request: PageRequest) -> dict[str, Any]:
    """A page of judged comparisons, newest first."""
    listed = [column for column in comparisons.c if column.name != "record"]
    query = select(*listed)
    if groups:
        query = query.where(comparisons.c.group_id.in_(groups))
    order = (SortKey(comparisons.c.imported_at, descending=True), SortKey(comparisons.c.id))
    context = {"list": "comparisons", "group": sorted(groups)}
    return page_of(connection, query, order, request, context=context, make=comparison_document)


def comparison_detail(connection: Connection, comparison_id: str) -> dict[str, Any]:
    """A judged comparison with its whole record."""
    row = connection.execute(select(comparisons).where(comparisons.c.id == comparison_id)).one_or_none()
    if row is None:
        raise not_found(f"no comparison with id {comparison_id}")
    return {**comparison_document(row), "record": row.record}
