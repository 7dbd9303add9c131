"""What is remembered of a stimulus until its card can be printed: counts, and the trials that will be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vally import counted_score, mean, reaches

if TYPE_CHECKING:
    from vally import GraderResult, Metrics, TrialDone, TrialResult

MAX_SHOWN = 3


@dataclass(slots=True)
class ShownTrial:
    """The parts of a trial that its block shows; the trajectory itself is let go."""

    index: int
    status: str
    passed: bool | None
    grade: GraderResult | None
    metrics: Metrics | None
    skills: list[str]
    model: str
    end_reason: str | None
    error: str | None
    skip_reason: str | None


@dataclass(slots=True)
class StimulusState:
    """Running figures of one eval x model x stimulus."""

    name: str
    eval_name: str
    model: str
    planned: int
    threshold: float | None
    pass_rate: float | None
    prompt: str
    verbose: bool
    skip_grade: bool
    done: int = 0
    errors: int = 0
    grader_errors: int = 0
    skipped: int = 0
    passed: int = 0
    scores: list[float] = field(default_factory=list)
    shown: list[ShownTrial] = field(default_factory=list)
    skip_reason: str | None = None

    def add(self, event: TrialDone) -> None:
        """Count one finished trial and keep it when it will be shown."""
        result = event.result
        self.done += 1
        if result.status == "error":
            self.errors += 1
        elif result.status == "skipped":
            self.skipped += 1
            self.skip_reason = result.skip_reason
        elif result.grade_result is not None:
            self._add_grade(result.grade_result, event.passed)
        if self._worth_showing(event):
            self.shown.append(_shown(result, event.passed))

    def _add_grade(self, grade: GraderResult, passed: bool | None) -> None:
        if passed is None:
            self.grader_errors += 1
            return
        self.passed += passed
        self.scores.append(counted_score(grade))

    def _worth_showing(self, event: TrialDone) -> bool:
        if self.planned == 1 or self.verbose:
            return True
        good = event.passed is True or event.result.status == "skipped" or self.skip_grade
        return not good and len(self.shown) < MAX_SHOWN

    @property
    def score(self) -> float | None:
        """Mean score of its trials with a verdict."""
        return mean(self.scores) if self.scores else None

    @property
    def verdict(self) -> str:
        """`PASS`, `FAIL`, `ERROR`, `SKIPPED` or `DONE` (not graded)."""
        if self.scores:
            return "PASS" if self._passes() else "FAIL"
        if self.errors or self.grader_errors:
            return "ERROR"
        return "SKIPPED" if self.skipped and self.skipped == self.done else "DONE"

    def _passes(self) -> bool:
        score = self.score
        assert score is not None
        if self.threshold is None and self.pass_rate is None:
            return self.passed == len(self.scores)
        good = self.threshold is None or reaches(score, self.threshold)
        rate = self.passed / len(self.scores)
        return good and (self.pass_rate is None or reaches(rate, self.pass_rate))

    @property
    def flakiness(self) -> float | None:
        """Failing share in percent when some but not all trials passed."""
        total = len(self.scores)
        return 100 * (total - self.passed) / total if 0 < self.passed < total else None


def _shown(result: TrialResult, passed: bool | None) -> ShownTrial:
    trajectory = result.trajectory
    metadata = trajectory.metadata if trajectory else {}
    return ShownTrial(
        index=result.trial_index,
        status=result.status,
        passed=passed,
        grade=result.grade_result,
        metrics=trajectory.metrics if trajectory else None,
        skills=sorted(
            (trajectory.metrics.skill_activation_breakdown or {}) if trajectory and trajectory.metrics else {}
        ),
        model=str(metadata.get("model") or result.model),
        end_reason=trajectory.end_reason if trajectory else None,
        error=result.error,
        skip_reason=result.skip_reason,
    )
