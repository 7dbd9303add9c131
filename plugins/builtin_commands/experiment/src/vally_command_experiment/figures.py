"""The figures of a report, gathered trial by trial."""

from __future__ import annotations

from dataclasses import dataclass, field

from vally import TrialResult, counted_score, mean

Key = tuple[str, str]


@dataclass(slots=True)
class Cell:
    """The trials of one stimulus in one variant with one model; `score` sums what verdict-bearing trials contribute."""

    verdicts: int = 0
    passed: int = 0
    score: float = 0.0
    errors: int = 0
    problem: str | None = None

    @property
    def mean_score(self) -> float | None:
        """Mean over the trials with a verdict."""
        return self.score / self.verdicts if self.verdicts else None


@dataclass(slots=True)
class ArmFigures:
    """All trials of one variant with one model. Sums; tokens, turns and milliseconds are those of agents."""

    trials: int = 0
    tokens: int = 0
    turns: int = 0
    wall_ms: int = 0
    costs: dict[str, float] = field(default_factory=dict)

    def per_trial(self, total: float) -> float | None:
        """A mean over the trials that an agent ran."""
        return total / self.trials if self.trials else None


@dataclass(slots=True)
class Figures:
    """`cells` by (eval file, eval name, stimulus) and then by (variant, model); `arms` by (variant, model)."""

    cells: dict[tuple[str, str, str], dict[Key, Cell]] = field(default_factory=dict)
    arms: dict[Key, ArmFigures] = field(default_factory=dict)

    def add(self, result: TrialResult, passed: bool | None) -> None:
        """Count a trial; of one with a grader error only the error counts."""
        key = (result.variant, result.model or "")
        stimulus = (result.eval_file_path, result.eval_name, result.stimulus)
        cell = self.cells.setdefault(stimulus, {}).setdefault(key, Cell())
        _count_cell(cell, result, passed)
        arm = self.arms.setdefault(key, ArmFigures())
        if result.trajectory is not None and result.status == "success":
            _count_arm(arm, result)

    def scores(self, key: Key) -> list[float]:
        """The mean scores of the stimuli of one variant and model."""
        found = (cells[key].mean_score for cells in self.cells.values() if key in cells)
        return [score for score in found if score is not None]

    def mean_score(self, key: Key) -> float | None:
        """The mean of its stimulus means."""
        scores = self.scores(key)
        return mean(scores) if scores else None

    def pass_rate(self, key: Key) -> float | None:
        """Passed trials of those with a verdict."""
        cells = [cells[key] for cells in self.cells.values() if key in cells]
        total = sum(cell.verdicts for cell in cells)
        return sum(cell.passed for cell in cells) / total if total else None


def _count_cell(cell: Cell, result: TrialResult, passed: bool | None) -> None:
    grade = result.grade_result
    if result.status == "error" or (grade is not None and grade.status == "error"):
        cell.errors += 1
        cell.problem = cell.problem or _error_text(result)
    elif passed is not None and grade is not None:
        cell.verdicts += 1
        cell.passed += passed
        cell.score += counted_score(grade)
        if not passed:
            cell.problem = cell.problem or _failure_text(result)


def _count_arm(arm: ArmFigures, result: TrialResult) -> None:
    assert result.trajectory is not None
    metrics = result.trajectory.metrics
    arm.trials += 1
    if metrics is None:
        return
    usage = metrics.token_usage
    arm.tokens += usage.total_tokens if usage else 0
    arm.turns += metrics.turn_count or 0
    arm.wall_ms += metrics.wall_time_ms or 0
    found = [*(usage.costs or ()), *([usage.cost] if usage.cost else ())] if usage else []
    for cost in found:
        arm.costs[cost.unit] = arm.costs.get(cost.unit, 0.0) + cost.amount


def _error_text(result: TrialResult) -> str:
    if result.error:
        return f"error: {result.error}"
    failed = (
        [item for item in (result.grade_result.details or ()) if item.status == "error"] if result.grade_result else []
    )
    return f"error: {failed[0].name}: {failed[0].evidence}" if failed else "error: a grader reached no verdict"


def _failure_text(result: TrialResult) -> str:
    assert result.grade_result is not None
    for item in result.grade_result.details or ():
        if item.passed is False and item.status != "error":
            return f"{item.name}: {item.evidence}"
    return result.grade_result.evidence or "failed"
