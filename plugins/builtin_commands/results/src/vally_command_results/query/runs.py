"""Runs: lists of them, and one with its evals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from vally_command_results.query.errors import not_found
from vally_command_results.query.filters import RunFilter
from vally_command_results.query.paging import PageRequest, SortKey, page_of
from vally_command_results.query.shapes import run_document
from vally_command_results.store.schema import evals, grader_results, outcome_tags, outcomes, runs

RUN_SORTS: Mapping[str, tuple[SortKey, ...]] = {
    "-startedAt": (SortKey(runs.c.started_at, descending=True), SortKey(runs.c.id)),
    "startedAt": (SortKey(runs.c.started_at), SortKey(runs.c.id)),
    "name": (SortKey(runs.c.name), SortKey(runs.c.id)),
    "-passRate": (SortKey(runs.c.pass_rate, descending=True), SortKey(runs.c.id)),
    "passRate": (SortKey(runs.c.pass_rate), SortKey(runs.c.id)),
    "-durationMs": (SortKey(runs.c.duration_ms, descending=True), SortKey(runs.c.id)),
}
LISTED = [column for column in runs.c if column.name not in ("config", "labels")]


def list_runs(
    connection: Connection, chosen: RunFilter, request: PageRequest, sort: str = "-startedAt"
) -> dict[str, Any]:
    """A page of runs."""
    query = select(*LISTED).where(*chosen.conditions())
    context = {"list": "runs", "sort": sort, **chosen.context()}
    page = page_of(connection, query, RUN_SORTS[sort], request, context=context, make=run_document)
    names = eval_names(connection, [item["id"] for item in page["items"]])
    for item in page["items"]:
        item["evalNames"] = names.get(item["id"], [])
    return page


def eval_names(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """The names of the evals of some runs, sorted."""
    found: dict[str, list[str]] = {}
    query = select(evals.c.run_id, evals.c.name).where(evals.c.run_id.in_(run_ids)).distinct().order_by(evals.c.name)
    for run_id, name in connection.execute(query):
        found.setdefault(run_id, []).append(name)
    return found


def require_run(connection: Connection, run_id: str) -> Any:
    """The row of a run; raises `QueryError` for an unknown id."""
    row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        raise not_found(f"no run with id {run_id}")
    return row


def run_detail(connection: Connection, run_id: str) -> dict[str, Any]:
    """A run with its evals, stimuli, configuration and siblings."""
    row = require_run(connection, run_id)
    document = run_document(row)
    items = eval_rows(connection, run_id)
    document["evalNames"] = sorted({item.name for item in items})
    return {
        **document,
        "stimuli": _stimuli(connection, run_id),
        "evals": [_eval_document(item) for item in items],
        "config": _config(row.config),
        "siblings": siblings(connection, row),
        "shard": row.shard,
        "labels": row.labels or {},
        "importedAt": row.imported_at,
    }


def eval_rows(connection: Connection, run_id: str) -> Sequence[Any]:
    """The evals of a run in the order of its summary."""
    return connection.execute(select(evals).where(evals.c.run_id == run_id).order_by(evals.c.id)).all()


def _stimuli(connection: Connection, run_id: str) -> list[str]:
    first = func.min(outcomes.c.seq)
    query = select(outcomes.c.stimulus).where(outcomes.c.run_id == run_id).group_by(outcomes.c.stimulus)
    return list(connection.scalars(query.order_by(first)))


def _eval_document(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "filePath": row.file_path,
        "model": row.model,
        "variant": row.variant,
        "passed": row.passed,
        "overallScore": row.overall_score,
        "threshold": row.threshold,
        "scoringApplied": row.scoring_applied,
        "stimuliRun": row.stimuli_run,
        "stimuliTotal": row.stimuli_total,
        "durationMs": row.duration_ms,
        "error": row.error,
        "evalHash": row.eval_hash,
        "configHash": row.config_hash,
    }


def _config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"options": None, "plan": None, **(config or {})}


def siblings(connection: Connection, row: Any) -> list[dict[str, Any]]:
    """The runs of the same experiment, this one included; none for other runs."""
    if row.group_id is None:
        return []
    query = select(runs.c.id, runs.c.variant, runs.c.is_baseline).where(runs.c.group_id == row.group_id)
    ordered = query.order_by(runs.c.is_baseline.desc(), runs.c.variant, runs.c.id)
    return [
        {"id": item.id, "variant": item.variant, "isBaseline": item.is_baseline} for item in connection.execute(ordered)
    ]


def facets(connection: Connection) -> dict[str, Any]:
    """Values for filter controls, at most 500 each."""

    def values(column: Any) -> list[str]:
        query = select(column).where(column.is_not(None)).distinct().order_by(column).limit(500)
        return list(connection.scalars(query))

    tags: dict[str, list[str]] = {}
    pairs = (
        select(outcome_tags.c.key, outcome_tags.c.value).distinct().order_by(outcome_tags.c.key, outcome_tags.c.value)
    )
    for key, value in connection.execute(pairs.limit(5000)):
        known = tags.setdefault(key, [])
        if len(known) < 500:
            known.append(value)
    return {
        "evalNames": values(evals.c.name),
        "models": values(evals.c.model),
        "variants": values(runs.c.variant),
        "tags": tags,
        "graderTypes": values(grader_results.c.grader_type),
        "kinds": values(runs.c.kind),
    }
