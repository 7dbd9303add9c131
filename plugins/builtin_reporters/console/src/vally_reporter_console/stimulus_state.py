"""What is remembered of a stimulus until its card can be printed: facts of trials, and the trials that are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vally import NO_MODEL, EvalRules, StimulusTally, TrialFacts, stimulus_figures

if TYPE_CHECKING:
    from vally import GraderResult, Metrics, TrialDone, TrialItem, TrialResult

MAX_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTrial:
    """The parts of a trial that its block shows; the trajectory itself is let go."""

    index: int
    status: str
    passed: bool | None
    grade: GraderResult | None
    metrics: Metrics | None
    model: str
    end_reason: str | None
    error: str | None
    skip_reason: str | None

    @classmethod
    def from_event(cls, event: TrialDone) -> ShownTrial:
        """Take what is shown out of a result."""
        result = event.result
        trajectory = result.trajectory
        used = trajectory.metadata.get("model") if trajectory else None
        return cls(
            index=result.trial_index,
            status=result.status,
            passed=event.passed,
            grade=result.grade_result,
            metrics=trajectory.metrics if trajectory else None,
            model=used if isinstance(used, str) and used else model_of(result),
            end_reason=trajectory.end_reason if trajectory else None,
            error=result.error,
            skip_reason=result.skip_reason,
        )


@dataclass(slots=True)
class StimulusState:
    """The trials of one eval x model x stimulus so far."""

    item: TrialItem
    model: str
    verbose: bool
    shown: list[ShownTrial] = field(default_factory=list)
    skip_reasons: set[str] = field(default_factory=set)
    _facts: list[TrialFacts] = field(default_factory=list)

    @property
    def planned(self) -> int:
        """Number of planned trials."""
        return self.item.total_trials

    @property
    def is_complete(self) -> bool:
        """Whether the last trial ended."""
        return len(self._facts) >= self.planned

    def add(self, event: TrialDone) -> None:
        """Count one finished trial and keep it when it will be shown."""
        result = event.result
        threshold = self.item.scoring.threshold
        self._facts.append(TrialFacts.from_result(result, threshold, eval_index=self.item.eval_index))
        if result.status == "skipped":
            self.skip_reasons.add(result.skip_reason or "no reason given")
        if self.planned == 1 or self.verbose or _is_bad(event):
            self.shown.append(ShownTrial.from_event(event))
            # The first ones in plan order are shown, whatever the order in which trials end.
            self.shown.sort(key=lambda trial: trial.index)
            if not self.verbose:
                del self.shown[MAX_SHOWN:]

    def tally(self) -> StimulusTally:
        """Counts and score over the trials so far."""
        return StimulusTally(self.item.stimulus.name, len(self.item.stimulus.graders), self.planned, self._facts)

    def verdict(self, tally: StimulusTally) -> str:
        """`pass`, `fail`, `error`, `skipped` or `ungraded`."""
        return tally.verdict(self._rules)

    def figures(self, tally: StimulusTally) -> list[str]:
        """pass@k, pass^k and the pass rate with its interval, for several trials."""
        return stimulus_figures(tally.stats(self._rules))

    @property
    def _rules(self) -> EvalRules:
        scoring = self.item.scoring
        return EvalRules(threshold=scoring.threshold, pass_rate=scoring.pass_rate)


def model_of(result: TrialResult) -> str:
    """The model of an item as records name it."""
    return result.model or NO_MODEL


def _is_bad(event: TrialDone) -> bool:
    graded = event.result.grade_result is not None
    return event.result.status == "error" or event.passed is False or (graded and event.passed is None)
