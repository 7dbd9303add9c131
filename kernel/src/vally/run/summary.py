"""The summary of a run, gathered trial by trial without keeping trajectories."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from vally.model.jsonio import timestamp
from vally.model.metrics import saturated
from vally.model.results import EvalSummary, RunSummary, Totals
from vally.run.elapsed import Span, busy_ms, merged, record_span
from vally.run.verdicts import EvalRules, StimulusTally, TrialFacts, judge_eval

if TYPE_CHECKING:
    from vally.run.reporting import PlannedEval

__all__ = ["RunTally", "TrialFacts"]


def cost_units(unit: str) -> dict[str, int]:
    """The units that count towards a unit, with how many of each make one."""
    return {unit: 1, "nano-aiu": 1_000_000_000} if unit == "aiu" else {unit: 1}


class RunTally:
    """Facts about the finished trials of planned evals; from them summaries and budget sums at any time.

    Trials may come in any order; of two with one place in the plan the later counts. `graded` is false with
    `--skip-grade`.
    """

    def __init__(self, evals: Sequence[PlannedEval], *, graded: bool = True) -> None:
        self._rules = {
            planned.index: EvalRules(threshold=planned.threshold, pass_rate=planned.pass_rate, graded=graded)
            for planned in evals
        }
        self._evals = {planned.index: planned for planned in evals if _planned_trials(planned)}
        self._facts: dict[int, dict[str, dict[int, TrialFacts]]] = {index: {} for index in self._evals}
        self._tokens = 0
        self._costs: defaultdict[str, float] = defaultdict(float)
        self._recorded: list[Span] | None = None

    def add(self, facts: TrialFacts) -> None:
        """Count a finished trial. Raises `KeyError` for an eval that is not planned."""
        trials = self._facts[facts.eval_index].setdefault(facts.stimulus, {})
        replaced = trials.get(facts.trial_index)
        self._count(replaced, -1)
        trials[facts.trial_index] = facts
        if facts.ended_ms is None or (replaced is not None and replaced.ended_ms is None):
            self._recorded = None
        self._count(facts, 1)

    def _count(self, facts: TrialFacts | None, sign: int) -> None:
        if facts is not None:
            self._tokens += sign * facts.tokens
            for unit, amount in facts.costs:
                self._costs[unit] += sign * amount

    def stimulus_trials(self, index: int, stimulus: str) -> list[TrialFacts]:
        """The trials of one stimulus so far, by trial index."""
        trials = self._facts[index].get(stimulus, {})
        return [trials[number] for number in sorted(trials)]

    @property
    def tokens(self) -> int:
        """Tokens of agents and judges so far."""
        return self._tokens

    def cost(self, unit: str) -> float:
        """Costs of agents and judges so far in a unit; `aiu` also counts `nano-aiu` (10^9 make one)."""
        return sum(self._costs.get(name, 0.0) / size for name, size in cost_units(unit).items())

    def eval_summary(self, index: int) -> EvalSummary:
        """The summary of one eval as it stands; what is planned but not counted makes it partial."""
        planned = self._evals[index]
        rules = self._rules[index]
        verdict = judge_eval(self._stimuli(planned), rules)
        trials = self._ordered(planned)
        errors = [trial.error for trial in trials if trial.error is not None]
        return EvalSummary(
            name=planned.name,
            eval_file_path=planned.eval_file_path,
            variant=planned.variant,
            model=planned.model,
            passed=verdict.passed,
            scoring_applied=planned.threshold is not None,
            overall_score=verdict.overall_score,
            threshold=planned.threshold,
            stimuli_run=verdict.stimuli_run,
            stimuli_total=verdict.stimuli_total,
            duration_ms=self._span(trials),
            error=errors[0] if errors else None,
            partial=True if verdict.partial else None,
            required_pass_rate=rules.pass_rate,
            reason=verdict.reason,
            stats=verdict.stats,
        )

    def run_summary(
        self,
        *,
        run_id: str,
        started_at: str,
        completed_at: str | None = None,
        duration_ms: int = 0,
        jsonl_path: str | None = None,
        status: Literal["completed", "cancelled"] = "completed",
        stop_reason: str | None = None,
        indexes: Collection[int] | None = None,
    ) -> RunSummary:
        """The summary of the run; a stop reason or a trial that was not run makes it partial too.

        `indexes` limits it to some evals, such as those of one variant.
        """
        chosen = [index for index in self._evals if indexes is None or index in indexes]
        evals = [self.eval_summary(index) for index in chosen]
        partial = stop_reason is not None or any(summary.partial for summary in evals)
        return RunSummary(
            run_id=run_id,
            status=status,
            # Of nothing one cannot say that it passed.
            passed=bool(evals) and not partial and all(summary.passed for summary in evals),
            had_execution_errors=any(trial.status == "error" or trial.nested_error for trial in self._of(chosen)),
            partial=partial,
            stop_reason=stop_reason,
            started_at=started_at,
            completed_at=completed_at or timestamp(),
            duration_ms=duration_ms,
            totals=self.totals(chosen),
            jsonl_path=jsonl_path,
            evals=evals,
        )

    def totals(self, indexes: Collection[int] | None = None) -> Totals:
        """Counts over the trials of some evals, by default of all; grader errors at the top level count as errors."""
        chosen = list(self._evals) if indexes is None else [index for index in self._evals if index in indexes]
        trials = self._of(chosen)
        return Totals(
            trials=len(trials),
            passed=sum(trial.passed is True for trial in trials),
            failed=sum(trial.passed is False for trial in trials),
            errors=sum(trial.status == "error" or trial.grader_error for trial in trials),
            skipped=sum(trial.status == "skipped" for trial in trials),
            flaky_stimuli=sum(
                0 < stimulus.c < stimulus.n for index in chosen for stimulus in self._stimuli(self._evals[index])
            ),
            total_tokens=saturated(sum(trial.tokens for trial in trials)),
            cost=[{"unit": unit, "amount": math.fsum(amounts)} for unit, amounts in _cost_amounts(trials).items()],
        )

    def _stimuli(self, planned: PlannedEval) -> list[StimulusTally]:
        return [
            StimulusTally(
                stimulus.name,
                stimulus.grader_count,
                stimulus.trials,
                self.stimulus_trials(planned.index, stimulus.name),
            )
            for stimulus in planned.stimuli
            if stimulus.trials
        ]

    def _ordered(self, planned: PlannedEval) -> list[TrialFacts]:
        """Trials of an eval in plan order, whatever the order in which they ended."""
        return [trial for stimulus in planned.stimuli for trial in self.stimulus_trials(planned.index, stimulus.name)]

    def _of(self, indexes: Iterable[int]) -> list[TrialFacts]:
        """Trials of some evals in plan order."""
        return [facts for index in indexes for facts in self._ordered(self._evals[index])]

    def _span(self, trials: Sequence[TrialFacts]) -> int:
        """Milliseconds from the first start to the last end; those of earlier processes come on top."""
        ends = [(trial.ended_ms, trial.duration_ms) for trial in trials if trial.ended_ms is not None]
        own = round(max(end for end, _ in ends) - min(end - duration for end, duration in ends)) if ends else 0
        return max(0, own) + self._recorded_span([trial for trial in trials if trial.ended_ms is None])

    def _recorded_span(self, trials: Sequence[TrialFacts]) -> int:
        """The same for records; time in which nothing of the run went on lies between two processes and is left out.

        Without starts it is the sum of the durations.
        """
        spans = [span for trial in trials if (span := record_span(trial.started_at, trial.duration_ms)) is not None]
        if not spans:
            return sum(trial.duration_ms for trial in trials)
        return busy_ms(self._recorded_times(), min(start for start, _ in spans), max(end for _, end in spans))

    def _recorded_times(self) -> list[Span]:
        if self._recorded is None:
            facts = [trial for trial in self._of(self._evals) if trial.ended_ms is None]
            spans = (record_span(trial.started_at, trial.duration_ms) for trial in facts)
            self._recorded = merged(span for span in spans if span is not None)
        return self._recorded


def _cost_amounts(trials: Iterable[TrialFacts]) -> dict[str, list[float]]:
    """Amounts by unit, units in the order of their first use."""
    amounts: dict[str, list[float]] = {}
    for facts in trials:
        for unit, amount in facts.costs:
            amounts.setdefault(unit, []).append(amount)
    return amounts


def _planned_trials(planned: PlannedEval) -> int:
    return sum(stimulus.trials for stimulus in planned.stimuli)
