"""One test case per trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from vally import resolve_grade_pass, two_decimals
from vally_reporter_junit.elements import Case, Outcome, add, number, properties, seconds, xml_text

if TYPE_CHECKING:
    from vally import GraderResult, TrialResult

Kind = Literal["pass", "failure", "error", "skipped"]
SUITE_KEYS = ("threshold", "model", "executor", "variant", "evalFile", "runId", "passed", "overallScore")
"""Properties of a suite that are no scores of graders, in their order."""


def trial_case(
    result: TrialResult, *, suite: str, line: int | None, threshold: float | None, skip_grade: bool
) -> tuple[Case, Kind]:
    """The test case of a trial and what it counts as."""
    name = result.stimulus if result.total_trials == 1 else f"{result.stimulus} (trial {result.trial_index + 1})"
    case = Case(xml_text(name))
    case.classname = xml_text(suite)
    case.time = seconds(result.duration_ms)
    if result.eval_file_path:
        case.file = xml_text(result.eval_file_path)
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
    """Score by name of the graders of a trial that reached a verdict; names that a suite uses itself get a prefix."""
    details = result.grade_result.details if result.grade_result else None
    return {
        f"grader:{item.name}" if item.name in SUITE_KEYS else item.name: item.score
        for item in details or ()
        if item.status != "error"
    }


def _outcome(result: TrialResult, threshold: float | None, skip_grade: bool) -> tuple[Kind, Outcome] | None:
    if result.status == "error":
        code = result.error_info.code if result.error_info else ""
        return "error", Outcome("error", result.error or "unknown error", type_=code or "executor-error")
    if result.status == "skipped":
        return "skipped", Outcome("skipped", result.skip_reason or "no reason given")
    if result.grade_result is None:
        # A stimulus without graders ran to its end; nothing about it can fail.
        return ("skipped", Outcome("skipped", "not graded")) if skip_grade else None
    grade = result.grade_result
    passed = resolve_grade_pass(grade, threshold)
    if passed is None:
        lines = _failing(grade.details or (), "", errors_only=True)
        return "error", Outcome("error", grade.evidence, type_="grader-error", text="\n".join(lines))
    return None if passed else ("failure", _failure(grade, threshold))


def _failure(grade: GraderResult, threshold: float | None) -> Outcome:
    details = grade.details or []
    failed = sum(not item.passed for item in details)
    message = f"{failed} of {len(details)} graders failed (score {two_decimals(grade.score)})"
    if not failed and threshold is not None:
        message = f"score {two_decimals(grade.score)} below threshold {number(threshold)}"
    lines = _failing(details, "", errors_only=False)
    return Outcome("failure", message, type_="grader-failure", text="\n".join(lines))


def _failing(details: Sequence[GraderResult], indent: str, *, errors_only: bool) -> Iterator[str]:
    for item in details:
        if item.passed or (errors_only and item.status != "error"):
            continue
        yield f"{indent}{one_line(item.name)}: {one_line(item.evidence)}"
        yield from _failing(item.details or (), f"{indent}  ", errors_only=False)


def one_line(text: str) -> str:
    """Text of others on one line."""
    lines = xml_text(text).replace("\t", " ").splitlines()
    return " ".join(stripped for line in lines if (stripped := line.strip()))
