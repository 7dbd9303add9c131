"""The little of each trial that tables and charts need, and the sums over the trials of a stimulus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vally import resolve_grade_pass

if TYPE_CHECKING:
    from vally import TrialResult

Verdict = Literal["pass", "fail", "error", "skipped", "ungraded"]
GLYPHS = {"pass": "✔", "fail": "✘", "error": "⚠", "skipped": "○", "ungraded": "–"}


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """One trial in a hundred bytes; `score` is None without a verdict."""

    index: int
    verdict: Verdict
    score: float | None
    duration_ms: int
    tokens: int
    turns: int
    tool_calls: int
    measured: bool

    @property
    def is_bad(self) -> bool:
        """Whether somebody will want to know why."""
        return self.verdict in ("fail", "error")

    @property
    def glyph(self) -> str:
        """The sign of the verdict."""
        return GLYPHS[self.verdict]


def trial_facts(result: TrialResult, threshold: float | None) -> TrialFacts:
    """The facts of a record; `threshold` is that of its eval."""
    verdict = trial_verdict(result, threshold)
    metrics = result.trajectory.metrics if result.trajectory else None
    usage = metrics.token_usage if metrics else None
    judge = result.judge_usage.total_tokens if result.judge_usage else 0
    grade = result.grade_result if verdict in ("pass", "fail") else None
    return TrialFacts(
        index=result.trial_index,
        verdict=verdict,
        score=grade.score if grade else None,
        duration_ms=result.duration_ms,
        tokens=(usage.total_tokens if usage else 0) + judge,
        turns=(metrics.turn_count or 0) if metrics else 0,
        tool_calls=(metrics.tool_call_count or 0) if metrics else 0,
        measured=metrics is not None,
    )


def trial_verdict(result: TrialResult, threshold: float | None) -> Verdict:
    """What a trial came to."""
    if result.status == "error":
        return "error"
    if result.status == "skipped":
        return "skipped"
    if result.grade_result is None:
        return "ungraded"
    passed = resolve_grade_pass(result.grade_result, threshold)
    return "error" if passed is None else "pass" if passed else "fail"


@dataclass(frozen=True, slots=True)
class StimulusFacts:
    """The trials of a stimulus in plan order, and sums over them."""

    trials: tuple[TrialFacts, ...]

    @classmethod
    def over(cls, results: Iterable[TrialResult], threshold: float | None) -> StimulusFacts:
        """Read the records once, keeping only their facts."""
        return cls(tuple(trial_facts(result, threshold) for result in results))

    @property
    def duration_ms(self) -> int:
        """Sum over the trials."""
        return sum(trial.duration_ms for trial in self.trials)

    @property
    def tokens(self) -> int:
        """Sum over the trials, judges included."""
        return sum(trial.tokens for trial in self.trials)

    @property
    def turns(self) -> float | None:
        """Mean over the trials with metrics."""
        return self._mean([trial.turns for trial in self.trials if trial.measured])

    @property
    def tool_calls(self) -> float | None:
        """Mean over the trials with metrics."""
        return self._mean([trial.tool_calls for trial in self.trials if trial.measured])

    @staticmethod
    def _mean(values: list[int]) -> float | None:
        return sum(values) / len(values) if values else None
