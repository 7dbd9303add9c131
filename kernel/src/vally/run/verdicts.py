"""Verdict of one eval from the facts about its trials: score, reason and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vally.model.results import TrialResult
from vally.run.scoring import (
    compute_multi_trial_metrics,
    counted_score,
    flakiness_percent,
    has_grader_error,
    is_flaky,
    mean,
    reaches,
    required_passed,
    resolve_grade_pass,
)
from vally.run.statistics import clustered_mean, wilson_interval
from vally.text.display import cut_middle
from vally.text.numbers import es_number, two_decimals

STOP_REASONS = frozenset({"cancelled", "fail-fast", "budget"})
"""Skip reasons of trials that the run itself did not start; any other was given by the executor."""

_ERROR_LENGTH = 200
StimulusWord = Literal["pass", "fail", "error", "skipped", "ungraded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """The little of a trial result that summaries need, a few hundred bytes whatever the trajectory.

    `score` is what the trial contributes to its stimulus and `passed` its verdict; both are None without a verdict.
    `grader_error` is a grader without verdict at the top level, `nested_error` one at any depth, and `error` says why
    the trial has no verdict. Times are in milliseconds, `tokens` include those of the judge, `costs` are (unit,
    amount) of agent and judge.
    """

    eval_index: int
    stimulus: str
    trial_index: int
    status: str
    score: float | None = None
    passed: bool | None = None
    required_passed: bool = True
    grader_error: bool = False
    nested_error: bool = False
    stopped: bool = False
    error: str | None = None
    tokens: int = 0
    judge_tokens: int = 0
    costs: tuple[tuple[str, float], ...] = ()
    wall_time_ms: int | None = None
    started_at: str | None = None
    duration_ms: int = 0
    ended_ms: float | None = None
    """When it ended by a monotonic clock; None for a trial of another process."""

    @property
    def bad(self) -> bool:
        """Whether the trial failed or has no verdict because of an error; `--fail-fast` stops at it."""
        return self.status == "error" or self.grader_error or self.passed is False

    @classmethod
    def from_result(
        cls, result: TrialResult, threshold: float | None, *, eval_index: int = 0, ended_ms: float | None = None
    ) -> TrialFacts:
        """The facts of a result; `threshold` is that of its eval."""
        grade = result.grade_result if result.status == "success" else None
        passed = None if grade is None else resolve_grade_pass(grade, threshold)
        trajectory = result.trajectory
        metrics = trajectory.metrics if trajectory else None
        usage = metrics.token_usage if metrics else None
        judge_tokens = result.judge_usage.total_tokens if result.judge_usage else 0
        return cls(
            eval_index=eval_index,
            stimulus=result.stimulus,
            trial_index=result.trial_index,
            status=result.status,
            score=None if grade is None or passed is None else counted_score(grade),
            passed=passed,
            required_passed=grade is None or required_passed(grade),
            grader_error=grade is not None and grade.status == "error",
            nested_error=grade is not None and has_grader_error(grade),
            stopped=result.status == "skipped" and result.skip_reason in STOP_REASONS,
            error=_error_text(result),
            tokens=(usage.total_tokens if usage else 0) + judge_tokens,
            judge_tokens=judge_tokens,
            costs=_costs(result),
            wall_time_ms=metrics.wall_time_ms if metrics else None,
            started_at=result.started_at,
            duration_ms=result.duration_ms,
            ended_ms=ended_ms,
        )


def _error_text(result: TrialResult) -> str | None:
    if result.status == "error":
        return cut_middle(result.error or result.status, _ERROR_LENGTH)
    details = result.grade_result.details if result.grade_result else None
    broken = next((item for item in details or () if item.status == "error"), None)
    return None if broken is None else cut_middle(f"{broken.name}: {broken.evidence}", _ERROR_LENGTH)


def _costs(result: TrialResult) -> tuple[tuple[str, float], ...]:
    metrics = result.trajectory.metrics if result.trajectory else None
    usage = metrics.token_usage if metrics else None
    found = [*(usage.costs or ()), *([usage.cost] if usage.cost else ())] if usage else []
    if result.judge_usage and result.judge_usage.cost:
        found.append(result.judge_usage.cost)
    return tuple((cost.unit, cost.amount) for cost in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRules:
    """What a verdict depends on besides the trials; `graded` is false with `--skip-grade`."""

    threshold: float | None = None
    pass_rate: float | None = None
    graded: bool = True


class StimulusTally:
    """The trials of one stimulus of an eval, in plan order; `planned` of them should exist."""

    def __init__(self, name: str, grader_count: int, planned: int, trials: Sequence[TrialFacts]) -> None:
        self.name = name
        self.has_graders = grader_count > 0
        self.trials = tuple(sorted(trials, key=lambda trial: trial.trial_index))
        bearing = [trial for trial in self.trials if trial.passed is not None]
        self.verdicts = [trial.passed is True for trial in bearing]
        self.n, self.c = len(bearing), sum(self.verdicts)
        scores = [trial.score for trial in bearing if trial.score is not None]
        self.score = mean(scores) if scores else None
        self.errors = sum(trial.status == "error" for trial in self.trials)
        self.grader_errors = sum(trial.grader_error for trial in self.trials)
        self.skipped = sum(trial.status == "skipped" for trial in self.trials)
        self.is_partial = len(self.trials) < planned or any(trial.stopped for trial in self.trials)
        self.executor_skipped = bool(self.trials) and all(
            trial.status == "skipped" and not trial.stopped for trial in self.trials
        )

    def rate_reaches(self, pass_rate: float) -> bool:
        """Whether the share of passing trials is large enough."""
        return self.n > 0 and reaches(self.c / self.n, pass_rate)

    def verdict(self, rules: EvalRules) -> StimulusWord:
        """The word that stands for the stimulus in reports."""
        if self.score is not None:
            return "pass" if self._passes(rules) else "fail"
        if self.errors or self.grader_errors:
            return "error"
        return "skipped" if self.skipped else "ungraded"

    def _passes(self, rules: EvalRules) -> bool:
        if rules.threshold is None and rules.pass_rate is None:
            return self.c == self.n
        assert self.score is not None
        enough = rules.threshold is None or reaches(self.score, rules.threshold)
        return enough and (rules.pass_rate is None or self.rate_reaches(rules.pass_rate))

    def stats(self, rules: EvalRules) -> dict[str, Any]:
        """The entry of `stats.stimuli`."""
        multi = compute_multi_trial_metrics(self.verdicts)
        return {
            "name": self.name,
            "verdict": self.verdict(rules),
            "score": self.score,
            "trials": len(self.trials),
            "passed": self.c,
            "errors": self.errors + self.grader_errors,
            "skipped": self.skipped,
            "passRate": multi.per_trial_pass_rate,
            "passAtK": multi.pass_at_k,
            "passToTheK": multi.pass_to_the_k,
            "flaky": is_flaky(self.n, self.c),
            "flakinessPercent": flakiness_percent(self.n, self.c),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalVerdict:
    """Whether an eval passed and why; `overall_score` is None without a threshold or without any score."""

    passed: bool
    reason: str
    overall_score: float | None
    stimuli_run: int
    stimuli_total: int
    partial: bool
    stats: dict[str, Any]


def judge_eval(stimuli: Sequence[StimulusTally], rules: EvalRules) -> EvalVerdict:
    """The verdict of one eval x variant x model from its stimuli in plan order."""
    scores = [stimulus.score for stimulus in stimuli if stimulus.score is not None]
    overall = mean(scores) if scores and rules.threshold is not None else None
    passed, reason = _judged(stimuli, rules, overall)
    return EvalVerdict(
        passed=passed,
        reason=reason,
        overall_score=overall,
        stimuli_run=len(scores),
        stimuli_total=len(stimuli),
        partial=any(stimulus.is_partial for stimulus in stimuli),
        stats=_stats(stimuli, rules),
    )


def _judged(stimuli: Sequence[StimulusTally], rules: EvalRules, overall: float | None) -> tuple[bool, str]:
    problems = " and ".join(", ".join(part) for part in _but_last(_problems(stimuli)))
    if not rules.graded or not any(stimulus.has_graders for stimulus in stimuli):
        return not problems, problems or ("no graders" if rules.graded else "not graded")
    ungradable = _ungradable(stimuli)
    if all(stimulus.score is None for stimulus in stimuli):
        return False, problems or (ungradable or ["no stimulus has a gradable trial"])[0]
    reached, text = _score_verdict(stimuli, rules, overall)
    if not (problems or ungradable):
        return reached, text
    return False, f"{text}, {'but' if reached else 'and'} {problems or ungradable[0]}"


def _but_last(parts: list[str]) -> list[list[str]]:
    return [part for part in (parts[:-1], parts[-1:]) if part]


def _problems(stimuli: Sequence[StimulusTally]) -> list[str]:
    """What keeps an eval from passing whatever its scores are, except stimuli without a score."""
    errors = sum(stimulus.errors for stimulus in stimuli)
    grader_errors = sum(stimulus.grader_errors for stimulus in stimuli)
    problems = []
    if errors:
        problems.append(f"{_counted(errors)} had an execution error")
    if grader_errors:
        problems.append(f"{_counted(grader_errors)} had a grader error")
    if any(stimulus.is_partial for stimulus in stimuli):
        problems.append("the eval is partial")
    return problems


def _counted(count: int) -> str:
    return f"{count} trial" if count == 1 else f"{count} trials"


def _ungradable(stimuli: Sequence[StimulusTally]) -> list[str]:
    return [
        f"stimulus '{stimulus.name}' has no gradable trial"
        for stimulus in stimuli
        if stimulus.has_graders and stimulus.score is None and not stimulus.executor_skipped
    ]


def _score_verdict(stimuli: Sequence[StimulusTally], rules: EvalRules, overall: float | None) -> tuple[bool, str]:
    """Whether threshold and pass rate are reached, or with neither every trial passed; and the text for it."""
    reached: list[str] = []
    if rules.threshold is not None and overall is not None:
        if not reaches(overall, rules.threshold):
            return False, _comparison("score", overall, "<", rules.threshold)
        reached.append(_comparison("score", overall, ">=", rules.threshold))
    if rules.pass_rate is not None:
        enough, text = _rate_verdict(stimuli, rules.pass_rate)
        if not enough:
            return False, text
        reached.append(text)
    if reached:
        return True, ", ".join(reached)
    total = sum(len(stimulus.trials) for stimulus in stimuli)
    failed = sum(stimulus.n - stimulus.c for stimulus in stimuli)
    if failed:
        return False, f"{failed} of {_counted(total)} failed"
    return True, "all graders passed"


def _rate_verdict(stimuli: Sequence[StimulusTally], pass_rate: float) -> tuple[bool, str]:
    scored = [stimulus for stimulus in stimuli if stimulus.n]
    for stimulus in scored:
        if not stimulus.rate_reaches(pass_rate):
            rate = _comparison("pass rate", stimulus.c / stimulus.n, "<", pass_rate)
            return False, f"{rate} of stimulus '{stimulus.name}'"
    return True, _comparison("pass rate", min(stimulus.c / stimulus.n for stimulus in scored), ">=", pass_rate)


def _comparison(what: str, value: float, sign: str, limit: float) -> str:
    """E.g. `score 0.83 < 0.90`; with all digits when two decimals would hide the difference."""
    shown, bound = two_decimals(value), two_decimals(limit)
    if sign == "<" and shown == bound:
        shown, bound = es_number(value), es_number(limit)
    return f"{what} {shown} {sign} {bound}"


def _stats(stimuli: Sequence[StimulusTally], rules: EvalRules) -> dict[str, Any]:
    n, c = sum(stimulus.n for stimulus in stimuli), sum(stimulus.c for stimulus in stimuli)
    rate = wilson_interval(c, n)
    score = clustered_mean([stimulus.score for stimulus in stimuli if stimulus.score is not None]).clipped()
    return {
        "trials": sum(len(stimulus.trials) for stimulus in stimuli),
        "passRate": c / n if n else None,
        "passRateCi": {"low": rate.low if rate else None, "high": rate.high if rate else None},
        "score": {"mean": score.mean, "stdError": score.std_error, "low": score.low, "high": score.high},
        "stimuli": [stimulus.stats(rules) for stimulus in stimuli],
    }
