"""What is remembered of a run until its end: trials with errors, and why stimuli fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import cut_evidence, cut_middle, has_grader_error, name_line, printable

if TYPE_CHECKING:
    from vally import GraderResult, TrialResult

MAX_SHOWN = 10
"""Annotations per level: GitHub shows no more of one step."""

_EVIDENCE = 300
_TEXT = 2_000
Key = tuple[int, str]
"""Index of an eval in the plan, and a stimulus of it."""


@dataclass(frozen=True, slots=True)
class TrialError:
    """An execution error of a trial, or graders that reached no verdict."""

    key: Key
    text: str


class Findings:
    """Gathers findings trial by trial; what is kept of a trial is a line or two."""

    def __init__(self) -> None:
        self._first: list[TrialError] = []
        self._further: list[TrialError] = []
        self._seen: Counter[Key] = Counter()
        self._why: dict[Key, tuple[int, str]] = {}

    def add(self, key: Key, result: TrialResult, passed: bool | None) -> None:
        """Take note of a finished trial; `passed` is its verdict."""
        text = _error_text(result)
        if text:
            self._seen[key] += 1
            kept = self._first if self._seen[key] == 1 else self._further
            # Errors of other stimuli say more than the same error once more.
            if len(kept) < MAX_SHOWN:
                kept.append(TrialError(key, f"{_number(result)}{text}"))
        if passed is False and result.grade_result is not None:
            earlier = self._why.get(key)
            if earlier is None or result.trial_index < earlier[0]:
                self._why[key] = (result.trial_index, _first_failing(result.grade_result))

    def errors(self) -> list[TrialError]:
        """The errors to show, at most ten."""
        return [*self._first, *self._further][:MAX_SHOWN]

    def why(self, key: Key) -> str:
        """The first failing grader of a stimulus and its evidence; empty when none failed."""
        return self._why.get(key, (0, ""))[1]


def _number(result: TrialResult) -> str:
    return f"trial {result.trial_index + 1}/{result.total_trials}: " if result.total_trials > 1 else ""


def _error_text(result: TrialResult) -> str:
    if result.status == "error":
        return cut_middle(printable(result.error or "unknown error"), _TEXT)
    grade = result.grade_result
    if grade is None or not has_grader_error(grade):
        return ""
    lines = [f"grader {_described(item)}" for item in _errored(grade)]
    return cut_middle("\n".join(lines), _TEXT)


def _errored(grade: GraderResult) -> Iterator[GraderResult]:
    for item in grade.details or ():
        if item.status == "error":
            yield item
        yield from _errored(item)


def _first_failing(grade: GraderResult) -> str:
    failing = next((item for item in grade.details or () if not item.passed), None)
    return "" if failing is None else _described(failing)


def _described(item: GraderResult) -> str:
    evidence = " ".join(printable(item.evidence).split())
    # What kept a grader from a verdict stands at the end of its evidence.
    cut = cut_middle if item.status == "error" else cut_evidence
    return f"{name_line(item.name or item.grader_type or '')}: {cut(evidence, _EVIDENCE)}"
