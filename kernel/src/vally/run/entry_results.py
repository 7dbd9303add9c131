"""Results as graders return them, checked, named and cut as the graders chapter says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vally.text.display import NAME_CLUSTERS, cut_clusters, cut_evidence, one_line_evidence, sanitise

if TYPE_CHECKING:
    from vally.model.results import GraderResult
    from vally.run.prepared_graders import PreparedEntry

LONG_EVIDENCE = 10_000
"""Code points kept of evidence with line breaks."""


def checked_result(value: Any, prepared: PreparedEntry) -> GraderResult:
    """The result a grader returned, or an error result that says what is wrong with it."""
    from pydantic import ValidationError

    from vally.model.results import GraderResult

    if isinstance(value, Mapping):
        try:
            value = GraderResult.model_validate(dict(value))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            return _invalid(prepared, f"{path}: {first['msg']}")
    if not isinstance(value, GraderResult):
        return _invalid(prepared, f"expected a GraderResult, got {type(value).__name__}")
    problem = _result_problem(value)
    return _invalid(prepared, problem) if problem else value


def _invalid(prepared: PreparedEntry, problem: str) -> GraderResult:
    return prepared.error(f"Grader returned an invalid result: {problem}", kind="exception")


def _result_problem(result: GraderResult) -> str | None:
    score = result.score
    if math.isnan(score):
        return "score is not a number"
    if not 0 <= score <= 1:
        return f"score {score!r} is outside 0..1"
    if result.passed and result.status == "error":
        return "passed with status 'error'"
    if result.status not in (None, "error"):
        return f"status {result.status!r} is not 'error'"
    for detail in result.details or ():
        problem = _result_problem(detail)
        if problem:
            return problem
    return None


def finish_result(
    result: GraderResult, prepared: PreparedEntry, *, judge: Mapping[str, object] = MappingProxyType({})
) -> GraderResult:
    """A copy with the fields that the kernel fills: type, kind, label, evidence, metadata of the entry.

    `judge` goes into the metadata of the result and of all nested ones.
    """
    entry = prepared.entry
    long_text = prepared.record is not None and (prepared.record.multiline or prepared.record.kind == "llm")
    metadata = {**(result.metadata or {}), **judge, **_entry_metadata(prepared)}
    update: dict[str, Any] = {
        "grader_type": entry.type,
        "configured_name": entry.name,
        "evidence": _evidence(result.evidence, long_text),
        "label": None if result.status == "error" else "correct" if result.passed else "incorrect",
        "metadata": metadata or None,
        "details": _finish_details(result.details, entry.type, long_text, judge),
    }
    return result.model_copy(update=update)


def _entry_metadata(prepared: PreparedEntry) -> dict[str, Any]:
    entry = prepared.entry
    found: dict[str, Any] = {}
    if entry.turn is not None:
        found["turn"] = entry.turn
    if entry.scope is not None:
        found["scope"] = entry.scope
    if entry.required:
        found["required"] = True
    return found


def _finish_details(
    details: Sequence[GraderResult] | None, grader_type: str, long_text: bool, judge: Mapping[str, object]
) -> list[GraderResult] | None:
    if details is None:
        return None
    return [
        detail.model_copy(
            update={
                "grader_type": grader_type,
                "evidence": _evidence(detail.evidence, long_text),
                "metadata": {**(detail.metadata or {}), **judge} or None,
                "details": _finish_details(detail.details, grader_type, long_text, judge),
            }
        )
        for detail in details
    ]


def _evidence(text: str, long_text: bool) -> str:
    return cut_evidence(text, LONG_EVIDENCE) if long_text else one_line_evidence(text)


def name_results(results: list[GraderResult], entries: Sequence[PreparedEntry]) -> None:
    """Give each result its display name; derived names that occur twice get ` #1`, ` #2`, ...

    The results are changed, so nobody else may hold them.
    """
    explicit = [_explicit_name(prepared) for prepared in entries]
    names = [
        given or prepared.default_name or _own_name(result) or prepared.entry.type
        for given, prepared, result in zip(explicit, entries, results, strict=True)
    ]
    taken = Counter(names)
    seen: Counter[str] = Counter()
    for index, (given, name) in enumerate(zip(explicit, names, strict=True)):
        if given is None and taken[name] > 1:
            seen[name] += 1
            name = f"{name} #{seen[name]}"
        results[index].name = name


def _explicit_name(prepared: PreparedEntry) -> str | None:
    entry = prepared.entry
    if entry.constraint is not None:
        return f"constraints.{entry.constraint}"
    return sanitise(entry.name) if entry.name is not None else None


def _own_name(result: GraderResult) -> str | None:
    return cut_clusters(sanitise(result.name), NAME_CLUSTERS) or None
