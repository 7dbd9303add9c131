"""Graders: which of them fail, in one run, in many, and in a matrix."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, select

from vally_command_results.query.filters import OutcomeFilter, RunFilter
from vally_command_results.query.joins import graders_with_outcomes
from vally_command_results.query.matrix import Place, column_place, matrix_document
from vally_command_results.query.metrics import Metric
from vally_command_results.query.runs import require_run
from vally_command_results.store.schema import evals, grader_results, outcomes, runs

SAMPLES = 3


def graders_of_run(connection: Connection, run_id: str, chosen: OutcomeFilter, depth: int = 0) -> dict[str, Any]:
    """The graders of a run, those that fail most first."""
    require_run(connection, run_id)
    conditions = [outcomes.c.run_id == run_id, *chosen.conditions()]
    found = _with_samples(connection, _grouped(connection, conditions, depth), conditions, depth)
    return {"graders": [_plain(item) for item in found]}


def graders_of_runs(connection: Connection, chosen: RunFilter, limit: int) -> dict[str, Any]:
    """The graders of all matching runs."""
    matching = select(runs.c.id).where(*chosen.conditions())
    conditions: list[ColumnElement[bool]] = [outcomes.c.run_id.in_(matching)]
    if chosen.eval_name:
        conditions.append(evals.c.name.in_(chosen.eval_name))
    if chosen.model:
        conditions.append(outcomes.c.model.in_(chosen.model))
    found = _with_samples(connection, _grouped(connection, conditions, 0)[:limit], conditions, 0)
    order = {run_id: place for place, run_id in enumerate(connection.scalars(_by_time(chosen)))}
    return {"graders": [_across(item, order) for item in found]}


def _by_time(chosen: RunFilter) -> Any:
    return select(runs.c.id).where(*chosen.conditions()).order_by(runs.c.started_at, runs.c.id)


def _grouped(connection: Connection, conditions: Iterable[ColumnElement[bool]], depth: int) -> list[dict[str, Any]]:
    """Graders by name and type, summed up by the database; those that fail most first."""
    chosen = [*conditions, grader_results.c.depth == depth]
    groups: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in connection.execute(_sums(chosen)):
        group = groups.setdefault((row.name, row.grader_type), _new(row))
        _count(group, row)
    for row in connection.execute(_stimuli(chosen)):
        groups[row.name, row.grader_type]["stimulusCount"] += 1
    return sorted(map(_with_rates, groups.values()), key=_order)


_errored = grader_results.c.status.is_not_distinct_from("error")
_BY = (grader_results.c.name, grader_results.c.grader_type)


def _number(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0))


def _sums(conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    judged_score = case((_errored, None), else_=grader_results.c.score)
    return (
        select(
            *_BY,
            outcomes.c.run_id,
            func.max(grader_results.c.kind).label("kind"),
            _number(_errored).label("errors"),
            _number(and_(~_errored, grader_results.c.passed)).label("passes"),
            _number(and_(~_errored, ~grader_results.c.passed)).label("fails"),
            judged_score.label("score"),
            func.count(judged_score).label("scored"),
        )
        .select_from(graders_with_outcomes)
        .where(*conditions)
        # Sums of fractions made by databases differ in their last digits. There are few different scores.
        .group_by(*_BY, outcomes.c.run_id, judged_score)
    )


def _stimuli(conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    # An eval has a row per run and model, so its name tells its stimuli from those of others.
    columns = (*_BY, evals.c.name.label("eval_name"), outcomes.c.stimulus)
    return select(*columns).select_from(graders_with_outcomes).where(*conditions).distinct()


def _new(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "graderType": row.grader_type,
        "kind": "",
        "passCount": 0,
        "failCount": 0,
        "errorCount": 0,
        "scores": Counter(),
        "stimulusCount": 0,
        "runs": {},
    }


def _count(group: dict[str, Any], row: Any) -> None:
    passes, fails = group["runs"].get(row.run_id, (0, 0))
    group["runs"][row.run_id] = (passes + row.passes, fails + row.fails)
    group["kind"] = max(group["kind"], row.kind or "")
    for key, value in (("passCount", row.passes), ("failCount", row.fails), ("errorCount", row.errors)):
        group[key] += value
    if row.scored:
        group["scores"][row.score] += row.scored


def _with_samples(
    connection: Connection, groups: Sequence[dict[str, Any]], conditions: Sequence[ColumnElement[bool]], depth: int
) -> list[dict[str, Any]]:
    """The groups with evidence of their first failures."""
    for group in groups:
        same = [
            outcomes.c.run_id.in_(_runs_of_samples(group["runs"])),
            grader_results.c.depth == depth,
            grader_results.c.name == group["name"],
            grader_results.c.grader_type.is_not_distinct_from(group["graderType"]),
            ~_errored,
            ~grader_results.c.passed,
        ]
        columns = (grader_results.c.evidence, outcomes.c.id)
        query = select(*columns).select_from(graders_with_outcomes).where(*conditions, *same)
        ordered = query.order_by(outcomes.c.run_id, outcomes.c.seq, grader_results.c.id).limit(SAMPLES)
        rows = connection.execute(ordered).all() if group["failCount"] else []
        group["sampleFailureEvidence"] = [row.evidence or "" for row in rows]
        group["sampleOutcomeIds"] = [row.id for row in rows]
    return list(groups)


def _runs_of_samples(runs: Mapping[str, tuple[int, int]]) -> list[str]:
    """The first runs that have enough failures between them, so that the others need not be looked at."""
    found: list[str] = []
    missing = SAMPLES
    for run_id in sorted(run_id for run_id, (_, fails) in runs.items() if fails):
        if missing <= 0:
            break
        found.append(run_id)
        missing -= runs[run_id][1]
    return found


def _with_rates(group: dict[str, Any]) -> dict[str, Any]:
    judged, scored = group["passCount"] + group["failCount"], group["scores"].total()
    return {
        **group,
        "passRate": group["passCount"] / judged if judged else None,
        "kind": group["kind"] or None,
        "meanScore": math.fsum(group["scores"].elements()) / scored if scored else None,
    }


def _order(group: Mapping[str, Any]) -> tuple[Any, ...]:
    rate = group["passRate"]
    return rate is None, rate or 0.0, -group["failCount"], group["name"], group["graderType"] or ""


_SHOWN = (
    "name",
    "graderType",
    "kind",
    "passCount",
    "failCount",
    "errorCount",
    "passRate",
    "meanScore",
    "stimulusCount",
    "sampleFailureEvidence",
    "sampleOutcomeIds",
)


def _plain(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: group[key] for key in _SHOWN}


def _across(group: Mapping[str, Any], order: Mapping[str, int]) -> dict[str, Any]:
    per_run: dict[str, list[int]] = dict(sorted(group["runs"].items(), key=lambda item: order.get(item[0], -1)))
    failed = [run_id for run_id, (_, fails) in per_run.items() if fails]
    rates = [passes / (passes + fails) for passes, fails in per_run.values() if passes + fails]
    return {
        **_plain(group),
        "runCount": len(per_run),
        "lastFailedRunId": failed[-1] if failed else None,
        "passRates": rates[-50:],
    }


def grader_matrix(
    connection: Connection, metric: Metric, conditions: Iterable[ColumnElement[bool]], rows: str, columns: str
) -> dict[str, Any]:
    """A matrix whose rows are graders or their types; `metric` is the pass rate or the score."""
    query = (
        select(
            grader_results.c.name,
            grader_results.c.grader_type,
            grader_results.c.status,
            grader_results.c.passed,
            grader_results.c.score,
            outcomes.c.model,
            outcomes.c.variant,
            evals.c.name.label("eval_name"),
        )
        .select_from(graders_with_outcomes)
        .where(*conditions, grader_results.c.depth == 0)
        .order_by(outcomes.c.run_id, outcomes.c.seq, grader_results.c.id)
    )
    cells: defaultdict[tuple[Place, Place], list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        name = row.name if rows == "grader" else row.grader_type or "(none)"
        cells[(name, name, None), column_place(columns, row)].append(row)
    value = _pass_rate if metric.id == "pass_rate" else _score
    return matrix_document(metric, cells, lambda group: (value(group), len(group), _flags(group)))


def _pass_rate(group: Sequence[Any]) -> float | None:
    judged = [row.passed for row in group if row.status != "error"]
    return sum(judged) / len(judged) if judged else None


def _score(group: Sequence[Any]) -> float | None:
    scores = [row.score for row in group if row.status != "error" and row.score is not None]
    return math.fsum(scores) / len(scores) if scores else None


def _flags(group: Sequence[Any]) -> list[str]:
    flags = ["errors"] if any(row.status == "error" for row in group) else []
    return [*flags, "low_count"] if len(group) == 1 else flags
