"""What the reports of an experiment show, whichever format they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally import DEFAULT_JUDGE_MODEL, NO_MODEL, clustered_mean
from vally_command_experiment.figures import ArmFigures, Cell, Figures, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One variant with one model. Rates and scores are 0..1, times milliseconds; None means not measured."""

    variant: str
    model: str
    is_baseline: bool
    evals_passed: int
    evals: int
    passed: bool
    mean_score: float | None
    score_low: float | None
    score_high: float | None
    pass_rate: float | None
    tokens: float | None
    turns: float | None
    duration_ms: float | None
    costs: Mapping[str, float]

    @property
    def is_graded(self) -> bool:
        """Whether anything speaks for or against the arm."""
        return self.mean_score is not None or not self.passed

    @property
    def label(self) -> str:
        """The variant with the mark of the baseline."""
        return f"{self.variant} (baseline)" if self.is_baseline else self.variant


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One stimulus: its cell for each arm, None where it did not run."""

    name: str
    cells: tuple[Cell | None, ...]

    def delta(self, arm: int, baseline: int) -> float | None:
        """Score of an arm minus that of the baseline."""
        ours, theirs = self.cells[arm], self.cells[baseline]
        if ours is None or theirs is None or ours.mean_score is None or theirs.mean_score is None:
            return None
        return ours.mean_score - theirs.mean_score


class Report:
    """Verdicts, figures, comparisons and the plan of one run; `plan` has the rows of `plan_rows`."""

    def __init__(
        self,
        document: Mapping[str, Any],
        figures: Figures,
        comparisons: Sequence[Mapping[str, Any]],
        plan: Sequence[Mapping[str, Any]],
    ) -> None:
        self.document = document
        self.comparisons = comparisons
        self.plan = plan
        self._figures = figures
        self.arms = tuple(self._arms())

    @property
    def evals(self) -> int:
        """Number of eval files that ran."""
        return len({item["evalFilePath"] for variant in self.document["variants"] for item in variant["evals"]})

    @property
    def judges(self) -> list[str]:
        """The models that compared: what the baseline of each compared eval names."""
        compared = {item["evalFile"] for item in self.comparisons}
        named = (
            str(item["judgeModel"])
            for item in self.plan
            if item["variant"] == self.document["baseline"] and item["evalFile"] in compared
        )
        return list(dict.fromkeys(named))

    @property
    def is_graded(self) -> bool:
        """Whether there is a verdict on every arm."""
        return all(arm.is_graded for arm in self.arms)

    def _arms(self) -> Iterator[Arm]:
        for variant in self.document["variants"]:
            for model in dict.fromkeys(item["model"] for item in variant["evals"]):
                evals = [item for item in variant["evals"] if item["model"] == model]
                yield self._arm(variant["name"], model, evals)

    def _arm(self, variant: str, model: str, evals: Sequence[Mapping[str, Any]]) -> Arm:
        key: Key = (variant, model)
        figures = self._figures.arms.get(key, ArmFigures())
        interval = clustered_mean(self._figures.scores(key)).clipped()
        spoiled = any(item["variant"] == variant for item in self.document["contaminated"])
        return Arm(
            variant=variant,
            model=model,
            is_baseline=variant == self.document["baseline"],
            evals_passed=sum(bool(item["passed"]) for item in evals),
            evals=len(evals),
            passed=not spoiled and all(item["passed"] for item in evals),
            mean_score=self._figures.mean_score(key),
            score_low=interval.low,
            score_high=interval.high,
            pass_rate=self._figures.pass_rate(key),
            tokens=figures.per_trial(figures.tokens),
            turns=figures.per_trial(figures.turns),
            duration_ms=figures.per_trial(figures.wall_ms),
            costs={unit: figures.per_trial(total) or 0.0 for unit, total in figures.costs.items()},
        )

    @property
    def baseline_arm(self) -> int | None:
        """The place of the baseline, when it is one arm only."""
        places = [place for place, arm in enumerate(self.arms) if arm.is_baseline]
        return places[0] if len(places) == 1 else None

    def score_rows(self) -> list[ScoreRow]:
        """The stimuli in plan order; evals of one name in two files are told apart by their files."""
        names = [eval_name for _, eval_name, _ in self._figures.cells]
        files = {name: {file for file, other, _ in self._figures.cells if other == name} for name in set(names)}
        order = self._plan_order()
        found = []
        for (file, eval_name, stimulus), cells in sorted(
            self._figures.cells.items(), key=lambda item: order.get((item[0][0], item[0][2]), len(order))
        ):
            label = eval_name if len(files[eval_name]) == 1 else file
            row = tuple(cells.get((arm.variant, arm.model)) for arm in self.arms)
            found.append(ScoreRow(f"{label} / {stimulus}", row))
        return found

    def _plan_order(self) -> dict[tuple[str, str], int]:
        keys = ((item["evalFile"], name) for item in self.plan for name in item["stimuli"])
        return {key: place for place, key in enumerate(dict.fromkeys(keys))}

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """Stimulus, arm and first problem of what failed or has no verdict."""
        for row in self.score_rows():
            for arm, cell in zip(self.arms, row.cells, strict=True):
                if cell is not None and cell.problem is not None:
                    yield row.name, arm.label, cell.problem


def plan_rows(experiment: Any) -> list[dict[str, Any]]:
    """The plan as reports show it, one row for each eval in each variant."""
    return [
        {
            "variant": item.variant,
            "evalFile": item.eval_file,
            "model": item.spec.defaults.model or NO_MODEL,
            "runs": 1 if item.spec.defaults.runs is None else item.spec.defaults.runs,
            "stimuli": [stimulus.name for stimulus in item.spec.stimuli],
            "judgeModel": item.spec.defaults.judge_model or DEFAULT_JUDGE_MODEL,
            "evalHash": item.eval_hash,
            "configHash": item.config_hash,
        }
        for item in experiment.specs
    ]
