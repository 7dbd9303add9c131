"""The row of one trial record, and the rows that belong to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally import RecordError, compact_json, compute_metrics, dump_record, load_trajectory, reaches
from vally_command_results.importing.values import clean, flag, real, text, time, whole
from vally_command_results.recorded import items, mapping, milliseconds, succeeded

Row = dict[str, Any]
EVIDENCE_CHARS = 64 * 1024
EXCERPT_CHARS = 2_000
CALL_CHARS = 500
SEARCH_CHARS = 4_000
UNNAMED = "(unnamed)"
UNKNOWN = "(unknown)"
_STATUSES = {"success": "success", "ok": "success", None: "success", "error": "error", "skipped": "skipped"}
_NANO_AIU = 1_000_000_000


class BadRecord(Exception):
    """A record that is none."""


@dataclass(slots=True)
class OutcomeRows:
    """Everything one record gives; `graders` refer to their parents by path."""

    outcome: Row
    tags: list[Row] = field(default_factory=list)
    graders: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)


def is_outcome(record: Mapping[str, Any]) -> bool:
    """Whether a record is a trial: typed, or a legacy line with a trajectory."""
    kind = record.get("type")
    return kind == "trial-result" or (kind is None and any(key in record for key in ("trajectory", "gradeResult")))


def stimulus_of(record: Mapping[str, Any]) -> str:
    """The name of a record's stimulus, wherever it stands."""
    trajectory, grade = mapping(record.get("trajectory")), mapping(record.get("gradeResult"))
    stimulus = record.get("stimulus")
    candidates = (
        stimulus.get("name") if isinstance(stimulus, Mapping) else stimulus,
        mapping(trajectory.get("stimulus")).get("name"),
        grade.get("stimulusName"),
    )
    return next((str(text(name)) for name in candidates if isinstance(name, str) and name), UNNAMED)


def outcome_rows(
    record: Mapping[str, Any], *, run_key: str, run_id: str, seq: int, item_id: str, repeated: bool, index: int,
    threshold: float | None,
) -> OutcomeRows:  # fmt: skip
    """The rows of a record; raises `BadRecord` for an unknown status."""
    status = record.get("status")
    if isinstance(status, (dict, list)) or status not in _STATUSES:
        raise BadRecord(f"status must be success, error or skipped, not {status!r}")
    outcome_id = outcome_key(run_key, item_id, seq if repeated else None)
    trajectory, grade = mapping(record.get("trajectory")), mapping(record.get("gradeResult"))
    word = _STATUSES[status]
    verdict, score = _verdict(word, grade, threshold)
    evidence = text(grade.get("evidence"))
    error = text(record.get("error"))
    stimulus = stimulus_of(record)
    outcome: Row = {
        "id": outcome_id,
        "run_id": run_id,
        "seq": seq,
        "item_id": text(item_id),
        "stimulus": stimulus,
        "model": text(record.get("model")),
        "variant": text(record.get("variant")),
        "trial_index": index,
        "total_trials": whole(record.get("totalTrials")) or 1,
        "status": word,
        "verdict": verdict,
        "score": score,
        "evidence": evidence,
        "error": error,
        "skip_reason": text(record.get("skipReason")),
        "end_reason": text(trajectory.get("endReason")),
        "executor": text(mapping(trajectory.get("metadata")).get("executor")),
        "started_at": time(record.get("startedAt")) or time(mapping(trajectory.get("metadata")).get("startedAt")),
        "duration_ms": whole(record.get("durationMs")),
        "grader_error": any(item.get("status") == "error" for _, item in _walk(grade)) if grade else False,
        "has_diff": _has_diff(trajectory),
        "output_excerpt": text(trajectory.get("output"), EXCERPT_CHARS),
        "artifact_dir": None,
        "search_text": " ".join(filter(None, (stimulus, evidence, error)))[:SEARCH_CHARS].lower(),
        **_figures(trajectory),
    }
    rows = OutcomeRows(outcome)
    rows.tags = list(_tags(outcome_id, mapping(record.get("tags"))))
    rows.graders = [_grader(outcome_id, path, item) for path, item in _walk(grade) if path]
    rows.calls = list(_calls(outcome_id, items(trajectory.get("events"))))
    outcome["tool_error_count"] = sum(row["success"] is False for row in rows.calls) if trajectory else None
    return rows


def outcome_key(run_key: str, item_id: str, line: int | None) -> str:
    """The id of an outcome, the same in every store; the line tells repeated items apart."""
    suffix = "" if line is None else f"\n{line}"
    return hashlib.sha256(f"{run_key}\n{item_id}{suffix}".encode("utf-8", "replace")).hexdigest()[:32]


def _verdict(status: str, grade: Mapping[str, Any], threshold: float | None) -> tuple[str, float | None]:
    """The verdict after the threshold of the eval, and the score that counts."""
    if status != "success":
        return status, None
    if not grade:
        return "ungraded", None
    if grade.get("status") == "error":
        return "error", None
    required = mapping(grade.get("metadata")).get("requiredPassed") is not False
    score = real(grade.get("score"))
    if not required:
        return "fail", 0.0
    if threshold is not None and score is not None:
        return ("pass" if reaches(score, threshold) else "fail"), score
    return ("pass" if grade.get("passed") is True else "fail"), score


def _has_diff(trajectory: Mapping[str, Any]) -> bool:
    parts = [trajectory, *map(mapping, items(trajectory.get("turnDiffs")))]
    return any(part.get("diff") is not None or part.get("diffPath") is not None for part in parts)


def _figures(trajectory: Mapping[str, Any]) -> Row:
    names = (
        "wall_time_ms", "turn_count", "tool_call_count", "agent_error_count", "skill_activation_count", "input_tokens",
        "output_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens", "model_calls", "cost_amount",
        "cost_unit",
    )  # fmt: skip
    if not trajectory:
        return dict.fromkeys(names)
    metrics = mapping(trajectory.get("metrics")) or _computed(trajectory)
    usage = mapping(metrics.get("tokenUsage"))
    amount, unit = _cost(usage)
    values = (
        whole(metrics.get("wallTimeMs")),
        whole(metrics.get("turnCount")),
        whole(metrics.get("toolCallCount")),
        whole(metrics.get("errorCount")),
        whole(metrics.get("skillActivationCount")),
        whole(usage.get("inputTokens")),
        whole(usage.get("outputTokens")),
        whole(usage.get("totalTokens")),
        whole(usage.get("cacheReadTokens")),
        whole(usage.get("cacheWriteTokens")),
        whole(usage.get("callCount")),
        amount,
        unit,
    )
    return dict(zip(names, values, strict=True))


def _computed(trajectory: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return dump_record(compute_metrics(load_trajectory(dict(trajectory)).events))
    except RecordError as error:
        raise BadRecord(str(error)) from error


def _cost(usage: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Amount and unit (usd or aiu) when the trial reports one unit."""
    single = usage.get("cost")
    costs = [mapping(item) for item in [*items(usage.get("costs")), *([single] if single else [])]]
    amounts: dict[str, float] = {}
    for cost in costs:
        amount, unit = real(cost.get("amount")), cost.get("unit")
        if amount is not None and isinstance(unit, str):
            name, share = ("aiu", amount / _NANO_AIU) if unit == "nano-aiu" else (unit, amount)
            amounts[name] = amounts.get(name, 0.0) + share
    if len(amounts) != 1:
        return None, None
    ((unit, amount),) = amounts.items()
    return amount, unit


def _tags(outcome_id: str, tags: Mapping[str, Any]) -> Iterator[Row]:
    for key, value in tags.items():
        values = value if isinstance(value, list) else [value]
        shown = dict.fromkeys(str(text(item if isinstance(item, str) else compact_json(item))) for item in values)
        for item in shown:
            yield {"outcome_id": outcome_id, "key": text(key), "value": item}


def _walk(grade: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A grade and all its details with their places, parents first; the whole has an empty place."""
    pending = [("", grade)]
    while pending:
        place, item = pending.pop(0)
        yield place, item
        details = [mapping(detail) for detail in items(item.get("details"))]
        pending[:0] = [(f"{place}.{number}" if place else str(number), detail) for number, detail in enumerate(details)]


def _grader(outcome_id: str, path: str, item: Mapping[str, Any]) -> Row:
    metadata = item.get("metadata")
    return {
        "outcome_id": outcome_id,
        "path": path,
        "depth": path.count("."),
        "name": text(item.get("name")) or UNNAMED,
        "configured_name": text(item.get("configuredName")),
        "grader_type": text(item.get("graderType")) or text(mapping(metadata).get("graderType")),
        "kind": text(item.get("kind")),
        "label": text(item.get("label")),
        "status": text(item.get("status")),
        "passed": item.get("passed") is True,
        "score": real(item.get("score")),
        "evidence": text(item.get("evidence"), EVIDENCE_CHARS),
        "metadata": clean(metadata) if isinstance(metadata, Mapping) else None,
    }


def _calls(outcome_id: str, events: list[Any]) -> Iterator[Row]:
    """The tool calls of a trajectory in order, each with its result."""
    results: dict[str, Mapping[str, Any]] = {}
    calls: list[Mapping[str, Any]] = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "tool_call":
            calls.append(event)
        elif kind == "tool_result":
            call_id = mapping(event.get("data")).get("toolCallId")
            if isinstance(call_id, str):
                results.setdefault(call_id, event)
    if not calls:
        return
    first = milliseconds(mapping(events[0]).get("timestamp"))
    for seq, event in enumerate(calls):
        data = mapping(event.get("data"))
        result = results.get(str(data.get("toolCallId")))
        yield _call(outcome_id, seq, event, data, result, first)


def _call(
    outcome_id: str,
    seq: int,
    event: Mapping[str, Any],
    data: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    first: float | None,
) -> Row:
    start = milliseconds(event.get("timestamp"))
    end = None if result is None else milliseconds(result.get("timestamp"))
    answer = mapping(result.get("data")) if result is not None else {}
    arguments = data.get("arguments")
    return {
        "outcome_id": outcome_id,
        "seq": seq,
        "turn": whole(event.get("turn")),
        "agent_id": text(event.get("agentId")),
        "call_id": text(data.get("toolCallId")),
        "tool_name": text(data.get("toolName")) or UNKNOWN,
        "success": succeeded(answer) if result is not None else None,
        "simulated": flag(data.get("simulated")) or flag(answer.get("simulated")) or False,
        "offset_ms": None if start is None or first is None else round(start - first),
        "duration_ms": None if start is None or end is None else max(0, round(end - start)),
        "arguments_excerpt": None if arguments is None else text(_shown(arguments), CALL_CHARS),
        "result_excerpt": text(_shown(answer.get("result")), CALL_CHARS) if answer.get("result") is not None else None,
    }


def _shown(value: object) -> str:
    return value if isinstance(value, str) else compact_json(value)
