"""Comparing runs stimulus by stimulus, without a judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from vally import reaches
from vally_command_results.query.errors import invalid
from vally_command_results.query.matrix import metric_rows, require_metric
from vally_command_results.query.metrics import METRICS, Metric, graded
from vally_command_results.query.runs import require_run
from vally_command_results.store.schema import evals, outcomes

CHANGES = ("fixed", "broken", "improved", "worse", "same", "unmatched")
OTHER_METRICS = (
    "pass_rate",
    "score",
    "error_rate",
    "flaky_rate",
    "duration_ms",
    "turns",
    "tool_calls",
    "total_tokens",
    "cost_usd",
    "cost_aiu",
)
Key = tuple[str, str, str | None]
"""Eval, stimulus and, where a run has several, model."""


def compare_runs(
    connection: Connection,
    run_ids: Sequence[str],
    *,
    metric: str = "pass_rate",
    eval_names: Sequence[str] = (),
    only_changed: bool = False,
) -> dict[str, Any]:
    """Two to six runs against the first of them; raises `QueryError`."""
    if not 2 <= len(run_ids) <= 6:
        raise invalid("runs", "give 2 to 6 run ids")
    if len(set(run_ids)) != len(run_ids):
        raise invalid("runs", "a run is named twice")
    measured = require_metric(metric)
    rows = {run_id: require_run(connection, run_id) for run_id in run_ids}
    by_model = any(len(row.models) != 1 for row in rows.values())
    groups = {run_id: _groups(connection, run_id, measured, eval_names, by_model) for run_id in run_ids}
    keys = list(dict.fromkeys(key for run_id in run_ids for key in groups[run_id]))
    matched = [key for key in keys if all(key in groups[run_id] for run_id in run_ids)]
    rates = _required_rates(connection, run_ids)
    documents = [_row(key, run_ids, groups, measured, rates) for key in matched]
    counts = Counter(document["change"] for document in documents)
    unmatched = [key for key in keys if key not in matched]
    shown = [item for item in documents if item["change"] != "same"] if only_changed else documents
    return {
        "base": run_ids[0],
        "runs": [{"id": row.id, "name": row.name, "models": row.models} for row in rows.values()],
        "metric": measured.head(),
        "totals": _totals(run_ids, groups, measured),
        "rows": sorted(shown, key=lambda item: CHANGES.index(item["change"])),
        "metrics": _other_metrics(connection, run_ids, eval_names),
        "unmatched": [
            {"key": _label(key), "runIds": [run_id for run_id in run_ids if key in groups[run_id]]} for key in unmatched
        ],
        "counts": {**{name: counts[name] for name in CHANGES}, "unmatched": len(unmatched)},
    }


def _groups(
    connection: Connection, run_id: str, metric: Metric, eval_names: Sequence[str], by_model: bool
) -> dict[Key, list[Any]]:
    conditions = [outcomes.c.run_id == run_id]
    if eval_names:
        conditions.append(evals.c.name.in_(eval_names))
    further = [
        column
        for column in (outcomes.c.score, outcomes.c.status, evals.c.threshold)
        if column.name not in metric.columns
    ]
    groups: defaultdict[Key, list[Any]] = defaultdict(list)
    for row in metric_rows(connection, metric, conditions, further):
        groups[(row.eval_name, row.stimulus, row.model if by_model else None)].append(row)
    return dict(groups)


def _required_rates(connection: Connection, run_ids: Sequence[str]) -> dict[int, float]:
    query = select(evals.c.id, evals.c.required_pass_rate).where(evals.c.run_id.in_(run_ids))
    return {row.id: row.required_pass_rate for row in connection.execute(query) if row.required_pass_rate is not None}


def _label(key: Key) -> str:
    return "::".join(part for part in key if part is not None)


def _row(
    key: Key,
    run_ids: Sequence[str],
    groups: Mapping[str, Mapping[Key, list[Any]]],
    metric: Metric,
    rates: Mapping[int, float],
) -> dict[str, Any]:
    values = [
        {
            "runId": run_id,
            "value": metric.compute(groups[run_id][key]),
            "outcomeCount": len(groups[run_id][key]),
            "verdict": stimulus_verdict(groups[run_id][key], rates),
            "outcomeId": groups[run_id][key][0].id,
        }
        for run_id in run_ids
    ]
    models = {row.model for row in groups[run_ids[-1]][key]}
    return {
        "key": _label(key),
        "evalName": key[0],
        "stimulus": key[1],
        "model": next(iter(models)) if len(models) == 1 else None,
        "values": values,
        "change": _change(values[0], values[-1], metric),
    }


def stimulus_verdict(rows: Sequence[Any], rates: Mapping[int, float]) -> str:
    """The verdict of a stimulus in a run: error before skipped before the share of its trials that pass."""
    if any(row.verdict == "error" for row in rows):
        return "error"
    judged = [row for row in rows if graded(row)]
    if not judged:
        return "skipped" if all(row.verdict == "skipped" for row in rows) else "ungraded"
    passed = sum(row.verdict == "pass" for row in judged)
    needed = rates.get(judged[0].eval_id)
    if needed is not None:
        return "pass" if reaches(passed / len(judged), needed) else "fail"
    threshold = judged[0].threshold
    if threshold is not None:
        mean = sum(row.score or 0.0 for row in judged) / len(judged)
        return "pass" if reaches(mean, threshold) else "fail"
    return "pass" if passed == len(judged) else "fail"


def _change(base: Mapping[str, Any], last: Mapping[str, Any], metric: Metric) -> str:
    before, after = base["verdict"], last["verdict"]
    if before != after and "pass" in (before, after):
        return "fixed" if after == "pass" else "broken"
    if base["value"] is None or last["value"] is None:
        return "same"
    better = metric.better(last["value"] - base["value"])
    return "same" if better is None else "improved" if better else "worse"


def _totals(
    run_ids: Sequence[str], groups: Mapping[str, Mapping[Key, list[Any]]], metric: Metric
) -> list[dict[str, Any]]:
    values = [metric.compute([row for rows in groups[run_id].values() for row in rows]) for run_id in run_ids]
    return [
        {"runId": run_id, "value": value, "delta": None if place == 0 else _delta(values[0], value)}
        for place, (run_id, value) in enumerate(zip(run_ids, values, strict=True))
    ]


def _delta(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _other_metrics(connection: Connection, run_ids: Sequence[str], eval_names: Sequence[str]) -> list[dict[str, Any]]:
    columns = dict.fromkeys(name for metric in OTHER_METRICS for name in METRICS[metric].columns)
    further = [outcomes.c[name] for name in columns]
    rows: dict[str, Sequence[Any]] = {}
    for run_id in run_ids:
        conditions = [outcomes.c.run_id == run_id]
        if eval_names:
            conditions.append(evals.c.name.in_(eval_names))
        rows[run_id] = metric_rows(connection, METRICS["outcome_count"], conditions, further)
    found = []
    for name in OTHER_METRICS:
        values = [METRICS[name].compute(rows[run_id]) for run_id in run_ids]
        if all(value is None for value in values):
            continue
        delta = _delta(values[0], values[-1])
        better = None if delta is None else METRICS[name].better(delta)
        found.append({"id": name, "values": values, "delta": delta, "better": better})
    return found
