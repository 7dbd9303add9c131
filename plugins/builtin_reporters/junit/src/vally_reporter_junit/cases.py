"""One test case per trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vally import resolve_grade_pass, two_decimals
from vally_reporter_junit.elements import Case, Outcome, add, number, properties, seconds, xml_text

if TYPE_CHECKING:
    from vally import GraderResult, TrialResult


def trial_case(
    result: TrialResult, *, suite: str, line: int | None, threshold: float | None, skip_grade: bool
) -> tuple[Case, str]:
    """The test case of a trial and what it counts as: `pass`, `failure`, `error` or `skipped`."""
    name = result.stimulus if result.total_trials == 1 else f"{result.stimulus} (trial {result.trial_index + 1})"
    case = Case(xml_text(name))
    case.classname = xml_text(suite)
    case.time = seconds(result.duration_ms)
    case.file = xml_text(result.eval_file_path or "")
    if line is not None:
        case.line = line
    scores = grader_scores(result)
    if scores:
        add(case, properties({name: number(score) for name, score in scores.items()}))
    outcome = _outcome(result, threshold, skip_grade)
    if outcome is None:
        return case, "pass"
    kind, element = outcome
    add(case, element)
    return case, kind


def grader_scores(result: TrialResult) -> dict[str, float]:
    """Score by display name of the graders of a trial."""
    details = result.grade_result.details if result.grade_result else None
    return {item.name: item.score for item in details or ()}


def _outcome(result: TrialResult, threshold: float | None, skip_grade: bool) -> tuple[str, Outcome] | None:
    if result.status == "error":
        code = result.error_info.code if result.error_info else "executor-error"
        return "error", Outcome("error", result.error or "unknown error", type_=code)
    if result.status == "skipped":
        return "skipped", Outcome("skipped", result.skip_reason or "skipped")
    if result.grade_result is None:
        # A stimulus without graders ran to its end; nothing about it can fail.
        return ("skipped", Outcome("skipped", "not graded")) if skip_grade else None
    grade = result.grade_result
    passed = resolve_grade_pass(grade, threshold)
    if passed is None:
        return "error", Outcome("error", grade.evidence, type_="grader-error", text=_lines(grade, errors=True))
    return None if passed else ("failure", _failure(grade))


def _failure(grade: GraderResult) -> Outcome:
    details = grade.details or []
    failed = sum(not item.passed for item in details)
    message = f"{failed} of {len(details)} graders failed (score {two_decimals(grade.score)})"
    return Outcome("failure", message, type_="grader-failure", text=_lines(grade, errors=False))


def _lines(grade: GraderResult, *, errors: bool) -> str:
    return "\n".join(_failing(grade.details or (), "", errors))


def _failing(details: Sequence[GraderResult], indent: str, errors: bool) -> Iterator[str]:
    for item in details:
        if item.passed or (errors and item.status != "error" and not indent):
            continue
        yield f"{indent}{item.name}: {' '.join(item.evidence.split())}"
        yield from _failing(item.details or (), f"{indent}  ", errors)
