"""From grader results to scores: the aggregate of a trial, its verdict, and numbers over the trials of a stimulus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.model.jsonio import timestamp as now
from vally.model.results import GraderResult

if TYPE_CHECKING:
    from vally.model.evalspec import GraderEntry

TOLERANCE = 1e-9
AGGREGATE_NAME = "trajectory-grade"


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is at least the threshold, small errors of binary fractions aside."""
    return score >= threshold - TOLERANCE


def mean(values: Sequence[float]) -> float:
    """Plain mean; the order of the values never changes it. Raises `ValueError` for none."""
    if not values:
        raise ValueError("the mean of no values is undefined")
    return math.fsum(values) / len(values)


def trial_score(scores: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted mean of scores (0..1); the plain mean when all weights are 0."""
    total = math.fsum(weights)
    if total == 0:
        return mean(scores)
    return math.fsum(weight * score for weight, score in zip(weights, scores, strict=True)) / total


def resolve_weight(entry: GraderEntry, weights: Mapping[str, float]) -> float:
    """Weight of a grader entry: its own, else that of its name, else of its type, else 1.

    An entry made from a constraint has the weight of the key `constraints.<key>`, else 0.
    """
    if entry.weight is not None:
        return entry.weight
    if entry.constraint is not None:
        return weights.get(f"constraints.{entry.constraint}", 0.0)
    if entry.name is not None and entry.name in weights:
        return weights[entry.name]
    return weights.get(entry.type, 1.0)


def aggregate_grade(
    results: Sequence[GraderResult],
    entries: Sequence[GraderEntry],
    *,
    weights: Mapping[str, float] | None = None,
    stimulus_name: str,
    trajectory_id: str,
    timestamp: str | None = None,
) -> GraderResult:
    """The `gradeResult` of a trial from the results of its entries, which have the same order.

    Results must have their final names. Raises `ValueError` for no results.
    """
    if not results:
        raise ValueError("a trial without graders has no grade")
    resolved = [resolve_weight(entry, weights or {}) for entry in entries]
    errors = sum(result.status == "error" for result in results)
    passed = sum(result.passed for result in results)
    all_passed = passed == len(results)
    scores = [0.0 if result.status == "error" else result.score for result in results]
    return GraderResult(
        name=AGGREGATE_NAME,
        kind="code",
        passed=all_passed,
        score=trial_score(scores, resolved),
        evidence=f"{passed}/{len(results)} graders passed" + (f", {errors} error(s)" if errors else ""),
        label=None if errors else "correct" if all_passed else "incorrect",
        status="error" if errors else None,
        metadata={
            "requiredPassed": all(
                result.passed for result, entry in zip(results, entries, strict=True) if entry.required
            ),
            "weights": {result.name: weight for result, weight in zip(results, resolved, strict=True)},
        },
        details=list(results),
        stimulus_name=stimulus_name,
        trajectory_id=trajectory_id,
        timestamp=timestamp or now(),
    )


def required_passed(grade: GraderResult) -> bool:
    """Whether all required graders passed; true when there are none."""
    return (grade.metadata or {}).get("requiredPassed") is not False


def resolve_grade_pass(grade: GraderResult, threshold: float | None = None) -> bool | None:
    """Verdict of a trial; None when a grader error leaves it without one."""
    if grade.status == "error":
        return None
    if not required_passed(grade):
        return False
    return grade.passed if threshold is None else reaches(grade.score, threshold)


def counted_score(grade: GraderResult) -> float:
    """What a trial contributes to the mean of its stimulus: its score, or 0 when a required grader failed."""
    return grade.score if required_passed(grade) else 0.0


def has_grader_error(grade: GraderResult) -> bool:
    """Whether the result or any detail at any depth reached no verdict."""
    return any(result.status == "error" for result in _walk(grade))


def _walk(grade: GraderResult) -> Iterator[GraderResult]:
    yield grade
    for detail in grade.details or ():
        yield from _walk(detail)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that at least one of k trials drawn from n, of which c pass, passes.

    Raises `ValueError` unless 1 <= k <= n and 0 <= c <= n.
    """
    _check_counts(n, c, k)
    if n - c < k:
        return 1.0
    drawn = math.comb(n, k)
    return (drawn - math.comb(n - c, k)) / drawn


def pass_at_k_naive(p: float, k: int) -> float:
    """The biased form `1 - (1 - p)^k`."""
    return 1 - (1 - p) ** k


def pass_to_the_k(p: float, k: int) -> float:
    """Probability that k independent trials of pass rate p all pass."""
    return p**k


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased form of pass^k: probability that k trials drawn from n, of which c pass, all pass."""
    _check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def _check_counts(n: int, c: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and n = {n}, not {k}")
    if not 0 <= c <= n:
        raise ValueError(f"c must be between 0 and n = {n}, not {c}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTrialMetrics:
    """Rates over the k verdict-bearing trials of a stimulus; None without any."""

    per_trial_pass_rate: float | None
    pass_at_k: float | None
    pass_to_the_k: float | None
    k: int


def compute_multi_trial_metrics(verdicts: Sequence[bool]) -> MultiTrialMetrics:
    """Pass rate, pass@k and pass^k with k the number of verdicts."""
    n, c = len(verdicts), sum(verdicts)
    if n == 0:
        return MultiTrialMetrics(per_trial_pass_rate=None, pass_at_k=None, pass_to_the_k=None, k=0)
    return MultiTrialMetrics(
        per_trial_pass_rate=c / n, pass_at_k=pass_at_k(n, c, n), pass_to_the_k=pass_to_the_k(c / n, n), k=n
    )


def is_flaky(n: int, c: int) -> bool:
    """Whether some but not all of n trials passed."""
    return 0 < c < n


def flakiness_percent(n: int, c: int) -> float:
    """Share of failed trials of a flaky stimulus in percent, else 0."""
    return 100 * (n - c) / n if is_flaky(n, c) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StimulusScore:
    """Score of one stimulus; `aggregate_score` is None when no trial bears a verdict."""

    stimulus_name: str
    aggregate_score: float | None
    multi_trial: MultiTrialMetrics
    flaky: bool
    flakiness_percent: float
    trial_results: tuple[GraderResult, ...]


def compute_stimulus_score(
    stimulus_name: str, grades: Sequence[GraderResult], threshold: float | None = None
) -> StimulusScore:
    """Score a stimulus from the grades of its trials in plan order; grades without verdict are left out."""
    bearing = [grade for grade in grades if grade.status != "error"]
    verdicts = [resolve_grade_pass(grade, threshold) is True for grade in bearing]
    n, c = len(verdicts), sum(verdicts)
    return StimulusScore(
        stimulus_name=stimulus_name,
        aggregate_score=mean([counted_score(grade) for grade in bearing]) if bearing else None,
        multi_trial=compute_multi_trial_metrics(verdicts),
        flaky=is_flaky(n, c),
        flakiness_percent=flakiness_percent(n, c),
        trial_results=tuple(grades),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScore:
    """Score of an eval; `overall_score` is None when no stimulus has one."""

    overall_score: float | None
    passed: bool
    stimuli: tuple[StimulusScore, ...]


def compute_skill_score(stimuli: Sequence[StimulusScore], threshold: float) -> SkillScore:
    """Mean over the stimuli that have a score, and whether it reaches the threshold."""
    scores = [stimulus.aggregate_score for stimulus in stimuli if stimulus.aggregate_score is not None]
    overall = mean(scores) if scores else None
    return SkillScore(
        overall_score=overall, passed=overall is not None and reaches(overall, threshold), stimuli=tuple(stimuli)
    )
