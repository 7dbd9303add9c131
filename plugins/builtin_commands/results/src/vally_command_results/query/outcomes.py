"""Outcomes: lists of them, and one with its graders and neighbours."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, select

from vally import parse_json
from vally_command_results.query.errors import not_found
from vally_command_results.query.filters import OutcomeFilter
from vally_command_results.query.joins import outcomes_with_evals
from vally_command_results.query.paging import PageRequest, SortKey, page_of
from vally_command_results.query.shapes import call_document, outcome_document
from vally_command_results.recorded import items, mapping
from vally_command_results.store.schema import evals, grader_results, outcome_tags, outcomes, raw_records, tool_calls

OUTPUT_BYTES = 256 * 1024
_ID = SortKey(outcomes.c.id)


def _by(column: Any, *, descending: bool = False) -> tuple[SortKey, ...]:
    return (SortKey(column, descending), _ID)


OUTCOME_SORTS: Mapping[str, tuple[SortKey, ...]] = {
    "seq": (SortKey(outcomes.c.run_id), SortKey(outcomes.c.seq), _ID),
    "-startedAt": _by(outcomes.c.started_at, descending=True),
    "score": _by(outcomes.c.score),
    "-score": _by(outcomes.c.score, descending=True),
    "durationMs": _by(outcomes.c.duration_ms),
    "-durationMs": _by(outcomes.c.duration_ms, descending=True),
    "totalTokens": _by(outcomes.c.total_tokens),
    "-totalTokens": _by(outcomes.c.total_tokens, descending=True),
}
_OF_EVAL = (evals.c.name.label("eval_name"), evals.c.file_path, evals.c.threshold)
_LISTED = [column for column in outcomes.c if column.name not in ("search_text", "output_excerpt")]


def selected_outcomes(chosen: OutcomeFilter) -> Select[Any]:
    """The query for the outcomes of a filter."""
    return select(*_LISTED, *_OF_EVAL).select_from(outcomes_with_evals).where(*chosen.conditions())


def list_outcomes(
    connection: Connection, chosen: OutcomeFilter, request: PageRequest, sort: str | None = None
) -> dict[str, Any]:
    """A page of outcomes; without a sort those of one run come in their order, others the newest first."""
    order = sort or ("seq" if len(chosen.run_id) == 1 else "-startedAt")
    context = {"list": "outcomes", "sort": order, **chosen.context()}
    query = selected_outcomes(chosen)
    page = page_of(connection, query, OUTCOME_SORTS[order], request, context=context, make=outcome_document)
    tags = tags_of(connection, [item["id"] for item in page["items"]])
    for item in page["items"]:
        item["tags"] = tags.get(item["id"], {})
    return page


def tags_of(connection: Connection, ids: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """The tags of some outcomes, by key."""
    found: dict[str, dict[str, list[str]]] = {}
    query = (
        select(outcome_tags)
        .where(outcome_tags.c.outcome_id.in_(ids))
        .order_by(outcome_tags.c.key, outcome_tags.c.value)
    )
    for row in connection.execute(query):
        found.setdefault(row.outcome_id, {}).setdefault(row.key, []).append(row.value)
    return found


def require_outcome(connection: Connection, outcome_id: str) -> Any:
    """The row of an outcome with its eval; raises `QueryError` for an unknown id."""
    query = select(outcomes, *_OF_EVAL).select_from(outcomes_with_evals).where(outcomes.c.id == outcome_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise not_found(f"no outcome with id {outcome_id}")
    return row


def raw_line(connection: Connection, outcome_id: str) -> bytes:
    """The record line as it was."""
    row = connection.execute(select(raw_records.c.body).where(raw_records.c.outcome_id == outcome_id)).one_or_none()
    if row is None:
        raise not_found(f"no record of outcome {outcome_id}")
    return zlib.decompress(row.body)


def record_of(connection: Connection, outcome_id: str) -> dict[str, Any]:
    """The record, parsed."""
    record = parse_json(raw_line(connection, outcome_id))
    return record if isinstance(record, dict) else {}


def outcome_detail(connection: Connection, outcome_id: str, *, artifact_count: int = 0) -> dict[str, Any]:
    """An outcome with prompt, output, graders, its other trials and its neighbours."""
    row = require_outcome(connection, outcome_id)
    record = record_of(connection, outcome_id)
    trajectory = mapping(record.get("trajectory"))
    stimulus, metadata = mapping(trajectory.get("stimulus")), mapping(trajectory.get("metadata"))
    output, truncated = _cut(trajectory.get("output"))
    previous, following = neighbours(connection, row)
    required = mapping(mapping(record.get("gradeResult")).get("metadata")).get("requiredPassed")
    return {
        **outcome_document(row),
        "tags": tags_of(connection, [outcome_id]).get(outcome_id, {}),
        "threshold": row.threshold,
        "prompt": _text(stimulus.get("prompt")),
        "turns": stimulus.get("turns") if isinstance(stimulus.get("turns"), list) else None,
        "output": output,
        "outputTruncated": truncated,
        "executor": row.executor,
        "skillsLoaded": [str(name) for name in items(metadata.get("skillsLoaded"))],
        "toolBreakdown": _breakdown(connection, outcome_id),
        "graders": grader_tree(connection, outcome_id),
        "requiredPassed": required if isinstance(required, bool) else None,
        "hasTrajectory": bool(trajectory),
        "hasDiff": row.has_diff,
        "diffTurns": [item["turn"] for item in map(mapping, items(trajectory.get("turnDiffs"))) if "turn" in item],
        "artifactCount": artifact_count,
        "workspacePath": _text(record.get("workspacePath")),
        "warnings": [str(item) for item in items(record.get("warnings"))],
        "errorInfo": record.get("errorInfo") if isinstance(record.get("errorInfo"), dict) else None,
        "trials": _trials(connection, row),
        "previousId": previous,
        "nextId": following,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cut(value: object) -> tuple[str | None, bool]:
    if not isinstance(value, str):
        return None, False
    encoded = value.encode("utf-8", "replace")
    if len(encoded) <= OUTPUT_BYTES:
        return value, False
    return encoded[:OUTPUT_BYTES].decode("utf-8", "ignore"), True


def _breakdown(connection: Connection, outcome_id: str) -> dict[str, int]:
    names = connection.scalars(select(tool_calls.c.tool_name).where(tool_calls.c.outcome_id == outcome_id))
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def grader_tree(connection: Connection, outcome_id: str) -> list[dict[str, Any]]:
    """The graders of an outcome in the recorded order, nested as recorded."""
    query = select(grader_results).where(grader_results.c.outcome_id == outcome_id).order_by(grader_results.c.id)
    documents: dict[int, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    for row in connection.execute(query):
        document = {
            "name": row.name,
            "configuredName": row.configured_name,
            "graderType": row.grader_type,
            "kind": row.kind,
            "passed": row.passed,
            "score": row.score,
            "label": row.label,
            "status": row.status,
            "evidence": row.evidence,
            "metadata": row.metadata,
            "details": [],
        }
        documents[row.id] = document
        (documents[row.parent_id]["details"] if row.parent_id in documents else top).append(document)
    return top


def _trials(connection: Connection, row: Any) -> list[dict[str, Any]]:
    same = (outcomes.c.run_id, outcomes.c.eval_id, outcomes.c.stimulus, outcomes.c.model)
    values = (row.run_id, row.eval_id, row.stimulus, row.model)
    conditions = [column.is_not_distinct_from(value) for column, value in zip(same, values, strict=True)]
    columns = (outcomes.c.id, outcomes.c.trial_index, outcomes.c.verdict, outcomes.c.score)
    query = select(*columns).where(*conditions).order_by(outcomes.c.trial_index, outcomes.c.seq)
    return [
        {"id": item.id, "trialIndex": item.trial_index, "verdict": item.verdict, "score": item.score}
        for item in connection.execute(query)
    ]


def neighbours(connection: Connection, row: Any, verdicts: Sequence[str] = ()) -> tuple[str | None, str | None]:
    """Ids of the outcomes before and after one in its run; with `verdicts` of the nearest that have one of them."""
    of_run = select(outcomes.c.id).where(outcomes.c.run_id == row.run_id)
    if verdicts:
        of_run = of_run.where(outcomes.c.verdict.in_(verdicts))
    before = of_run.where(outcomes.c.seq < row.seq).order_by(outcomes.c.seq.desc()).limit(1)
    after = of_run.where(outcomes.c.seq > row.seq).order_by(outcomes.c.seq).limit(1)
    return connection.scalar(before), connection.scalar(after)


def list_calls(connection: Connection, outcome_id: str, request: PageRequest) -> dict[str, Any]:
    """A page of the tool calls of an outcome."""
    require_outcome(connection, outcome_id)
    query = select(tool_calls).where(tool_calls.c.outcome_id == outcome_id)
    order = (SortKey(tool_calls.c.seq), SortKey(tool_calls.c.id))
    context = {"list": "tools", "outcome": outcome_id}
    return page_of(connection, query, order, request, context=context, make=call_document)
