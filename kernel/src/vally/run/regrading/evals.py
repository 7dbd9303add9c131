"""The evals that a re-grading is about, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vally.model.results import NO_MODEL
from vally.run.plan import make_plan
from vally.run.regrading.matching import Match
from vally.run.regrading.records import facts_of
from vally.run.summary import RunTally

if TYPE_CHECKING:
    from vally.model.evalspec import EvalSpec
    from vally.model.results import RunSummary, TrialResult
    from vally.run.plan import Plan, PlanOptions
    from vally.run.regrading.work import Assigned, Graded
    from vally.run.reporting import PlannedEval
    from vally.run.trial import TrialItem
    from vally.run.verdicts import TrialFacts

EvalKey = tuple[int, str, str | None]
"""Position of a spec, variant and model: what has a verdict of its own."""


class RegradedEvals:
    """Plans the stimuli that have documents, and gathers the facts about these.

    `plan` holds those stimuli, one trial of each, and `items` their items.
    """

    def __init__(
        self,
        specs: Sequence[EvalSpec],
        assigned: Sequence[Assigned],
        options: PlanOptions,
    ) -> None:
        wanted = {item.match for item in assigned}
        used = sorted({match.spec for match in wanted})
        matches = sorted(wanted, key=lambda match: (match.spec, match.stimulus))
        chosen = [
            replace(
                specs[number],
                stimuli=tuple(specs[number].stimuli[match.stimulus] for match in matches if match.spec == number),
            )
            for number in used
        ]
        self.plan: Plan = make_plan(chosen, options)
        self.items: Mapping[Match, TrialItem] = dict(zip(matches, self.plan.items(), strict=True))
        self._evals = dict(zip(used, self.plan.evals, strict=True))
        self._planned = self._counted(assigned)
        self._facts: dict[EvalKey, list[TrialFacts]] = {key: [] for key in self._planned}

    def _counted(self, assigned: Sequence[Assigned]) -> dict[EvalKey, PlannedEval]:
        counts: dict[EvalKey, dict[str, int]] = {}
        for item in assigned:
            name = self.items[item.match].stimulus.name
            trials = counts.setdefault(_key(item), {})
            trials[name] = trials.get(name, 0) + 1
        keys = sorted(counts, key=lambda key: key[0])
        return {key: self._eval(key, index, counts[key]) for index, key in enumerate(keys)}

    def _eval(self, key: EvalKey, index: int, trials: Mapping[str, int]) -> PlannedEval:
        spec, variant, model = key
        planned = self._evals[spec].planned
        stimuli = tuple(replace(item, trials=trials[item.name]) for item in planned.stimuli if trials.get(item.name))
        return replace(planned, index=index, variant=variant, model=model or NO_MODEL, stimuli=stimuli)

    @property
    def planned(self) -> list[PlannedEval]:
        """The evals x variants x models of the input, with the number of trials of each stimulus."""
        return list(self._planned.values())

    def threshold(self, graded: Graded) -> float | None:
        """The threshold that decides about a trial."""
        return self._evals[graded.assigned.match.spec].threshold

    def add(self, graded: Graded, result: TrialResult) -> TrialFacts:
        """Count a trial."""
        key = _key(graded.assigned)
        index = self._planned[key].index
        facts = facts_of(graded, result, eval_index=index, threshold=self.threshold(graded))
        self._facts[key].append(facts)
        return facts

    @property
    def has_grader_errors(self) -> bool:
        """Whether some grader, at any depth, reached no verdict."""
        return any(facts.nested_error for found in self._facts.values() for facts in found)

    def readable(self) -> list[PlannedEval]:
        """The evals with the trials that turned out to be readable; those without any are left out."""
        evals = []
        for key, planned in self._planned.items():
            counts: dict[str, int] = {}
            for facts in self._facts[key]:
                counts[facts.stimulus] = counts.get(facts.stimulus, 0) + 1
            if counts:
                evals.append(self._eval(key, planned.index, counts))
        return evals

    def summary(self, run_id: str, started_at: str, duration_ms: int) -> RunSummary:
        """Verdicts of the readable evals, in their order."""
        tally = RunTally(self.readable())
        for found in self._facts.values():
            for facts in found:
                tally.add(facts)
        return tally.run_summary(run_id=run_id, started_at=started_at, duration_ms=duration_ms)


def _key(assigned: Assigned) -> EvalKey:
    return assigned.match.spec, assigned.document.variant, assigned.document.model
