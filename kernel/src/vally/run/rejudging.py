"""Asking again what judges left without a verdict; every other result of a grade stays as it was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import GraderEntry
from vally.records import GraderSpec
from vally.run.entry_grading import EntryGrader, GradingFacts
from vally.run.prepared_graders import prepare_entries
from vally.run.scoring import aggregate_grade, has_grader_error

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.results import GraderResult
    from vally.run.grading import GradingRequest


def unjudged(grade: GraderResult, host: PluginHost) -> list[int]:
    """Positions of the results that a judge left without a verdict, as a whole or in a part."""
    return [
        index
        for index, result in enumerate(grade.details or ())
        if has_grader_error(result) and _asks_judge(host, result.grader_type)
    ]


def _asks_judge(host: PluginHost, keyword: str | None) -> bool:
    record = host.get("grader", keyword) if keyword else None
    return isinstance(record, GraderSpec) and record.requires_judge


def matching_entry(results: Sequence[GraderResult], index: int, entries: Sequence[GraderEntry]) -> GraderEntry | None:
    """The entry of a spec that a result belongs to: that of its explicit name, else the one of its type and place."""
    result = results[index]
    if result.configured_name is not None:
        return next((entry for entry in entries if entry.name == result.configured_name), None)
    before = sum(item.grader_type == result.grader_type and item.configured_name is None for item in results[:index])
    same = [entry for entry in entries if entry.type == result.grader_type and entry.name is None]
    return same[before] if before < len(same) else None


async def rejudged(request: GradingRequest, entry: GraderEntry, recorded: GraderResult) -> GraderResult:
    """The result of an entry asked again; of one that has a verdict only the parts that have none are asked.

    A grader that cannot repeat parts keeps its recorded result then. Never raises for what a grader does.
    """
    (prepared,) = prepare_entries(request.host, [entry], request.spec_dir, request.on_warning)
    if recorded.status != "error":
        repeat = getattr(prepared.grader, "repeat", None)
        if repeat is None:
            return recorded
        prepared = replace(prepared, grader=_Repeating(repeat, recorded), calling="async")
    result = await EntryGrader(GradingFacts(request), prepared).result()
    return result.model_copy(update={"name": recorded.name, "configured_name": recorded.configured_name})


@dataclass(frozen=True, slots=True)
class _Repeating:
    """A grader that repeats parts of a recorded result instead of grading."""

    repeat: Any
    recorded: GraderResult

    async def grade(self, input: Any) -> Any:
        return await self.repeat(input, self.recorded)

    def asserts_absence(self, _: Any) -> bool:
        # An empty scope was an answer already.
        return True


def with_results(grade: GraderResult, changed: dict[int, GraderResult]) -> GraderResult:
    """A grade with some of its results replaced; weights and required graders are those that it recorded."""
    details = [changed.get(index, result) for index, result in enumerate(grade.details or ())]
    weights = (grade.metadata or {}).get("weights")
    known = weights if isinstance(weights, dict) else {}
    entries = [
        GraderEntry(
            type=result.grader_type or result.name,
            weight=float(known.get(result.name, 1.0)),
            required=(result.metadata or {}).get("required") is True,
        )
        for result in details
    ]
    return aggregate_grade(
        details,
        entries,
        stimulus_name=grade.stimulus_name or "",
        trajectory_id=grade.trajectory_id or "",
    )
