"""From grader results to scores and verdicts of trials."""

from __future__ import annotations

from typing import Any

import pytest

from vally.model.evalspec import GraderEntry
from vally.model.results import GraderResult
from vally.run.scoring import (
    aggregate_grade,
    compute_multi_trial_metrics,
    compute_skill_score,
    compute_stimulus_score,
    counted_score,
    has_grader_error,
    pass_at_k,
    pass_at_k_naive,
    pass_hat_k,
    pass_to_the_k,
    resolve_grade_pass,
    resolve_weight,
    trial_score,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "at_k", "to_the_k", "hat_k"),
    [
        pytest.param(1, 0, 1, 0, 0, 0, id="PK-1"),
        pytest.param(1, 1, 1, 1, 1, 1, id="PK-2"),
        pytest.param(3, 1, 1, 0.333333, 0.333333, 0.333333, id="PK-3"),
        pytest.param(3, 1, 2, 0.666667, 0.111111, 0, id="PK-4"),
        pytest.param(3, 1, 3, 1, 0.037037, 0, id="PK-5"),
        pytest.param(3, 2, 2, 1, 0.444444, 0.333333, id="PK-6"),
        pytest.param(3, 2, 3, 1, 0.296296, 0, id="PK-7"),
        pytest.param(5, 0, 5, 0, 0, 0, id="PK-8"),
        pytest.param(5, 1, 2, 0.4, 0.04, 0, id="PK-9"),
        pytest.param(5, 2, 2, 0.7, 0.16, 0.1, id="PK-10"),
        pytest.param(5, 3, 5, 1, 0.07776, 0, id="PK-11"),
        pytest.param(5, 4, 5, 1, 0.32768, 0, id="PK-12"),
        pytest.param(10, 3, 5, 0.916667, 0.00243, 0, id="PK-13"),
        pytest.param(10, 3, 8, 1, 0.000066, 0, id="PK-14"),
        pytest.param(200, 3, 10, 0.143307, 5.767e-19, 0, id="PK-15"),
        pytest.param(1000, 1, 100, 0.1, 1e-300, 0, id="PK-16"),
    ],
)
def test_pass_at_k(n: int, c: int, k: int, at_k: float, to_the_k: float, hat_k: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(at_k, abs=1e-6)
    assert pass_to_the_k(c / n, k) == pytest.approx(to_the_k, rel=1e-3, abs=1e-6 if to_the_k > 1e-6 else 0)
    assert pass_hat_k(n, c, k) == pytest.approx(hat_k, abs=1e-6)


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 2), (3, 1, 0)], ids=["PK-17a", "PK-17b", "PK-17c"])
def test_impossible_counts(function: Any, n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="must be between"):
        function(n, c, k)


def test_the_naive_form() -> None:
    assert pass_at_k_naive(0.5, 2) == 0.75


@pytest.mark.parametrize(
    ("verdicts", "expected", "flaky", "percent"),
    [
        pytest.param("TTFTT", (0.8, 1, 0.32768, 5), True, 20, id="MTM-1"),
        pytest.param("TFT", (0.666667, 1, 0.296296, 3), True, 33.333333, id="MTM-2"),
        pytest.param("FFF", (0, 0, 0, 3), False, 0, id="MTM-3"),
        pytest.param("T", (1, 1, 1, 1), False, 0, id="MTM-4"),
        pytest.param("", (None, None, None, 0), False, 0, id="MTM-5"),
    ],
)
def test_multi_trial_metrics(verdicts: str, expected: tuple[Any, ...], flaky: bool, percent: float) -> None:
    multi = compute_multi_trial_metrics([word == "T" for word in verdicts])
    found = (multi.per_trial_pass_rate, multi.pass_at_k, multi.pass_to_the_k, multi.k)
    assert found == pytest.approx(expected, abs=1e-6)
    score = compute_stimulus_score("s", [_grade(1 if word == "T" else 0) for word in verdicts])
    assert score.flaky is flaky
    assert score.flakiness_percent == pytest.approx(percent, abs=1e-6)
    assert score.multi_trial == multi


def _grade(score: float, passed: bool | None = None, **fields: Any) -> GraderResult:
    return GraderResult.verdict(score == 1 if passed is None else passed, "", score=score, name="g", **fields)


@pytest.mark.parametrize(
    ("weights", "scores", "passed", "threshold", "score", "trial"),
    [
        pytest.param([0.7, 0.3], [1, 0], None, 0.7, 0.7, True, id="AG-1"),
        pytest.param([0.7, 0.2, 0.1], [1, 1, 0], None, 0.9, 0.9, True, id="AG-2"),
        pytest.param([2, 1, 1.5], [1, 0.5, 0], None, 0.6, 0.555556, False, id="AG-3"),
        pytest.param([1, 1, 1], [1, 1, 0], None, None, 0.666667, False, id="AG-4"),
        pytest.param([0, 0], [1, 0], None, 0.5, 0.5, True, id="AG-5"),
        pytest.param([1], [0.9], True, 1, 0.9, False, id="AG-6"),
        pytest.param([1], [0.9], False, 0.8, 0.9, True, id="AG-7"),
        pytest.param([1], [1], False, None, 1, False, id="AG-8"),
        pytest.param([1], [0.6999999995], True, 0.7, 0.7, True, id="AG-10a"),
        pytest.param([1], [0.699999998], True, 0.7, 0.7, False, id="AG-10b"),
    ],
)
def test_aggregate_and_threshold(
    weights: list[float], scores: list[float], passed: bool | None, threshold: float | None, score: float, trial: bool
) -> None:
    entries = [GraderEntry(type=f"g{index}", weight=weight) for index, weight in enumerate(weights)]
    results = [_grade(value, passed) for value in scores]
    grade = aggregate_grade(results, entries, stimulus_name="s", trajectory_id="t")
    assert grade.score == pytest.approx(score, abs=1e-6)
    assert trial_score(scores, weights) == grade.score
    assert resolve_grade_pass(grade, threshold) is trial


@pytest.mark.parametrize("threshold", [0.5], ids=["AG-9"])
def test_a_failed_required_grader_decides(threshold: float) -> None:
    entries = [GraderEntry(type="a", weight=19), GraderEntry(type="b", required=True)]
    grade = aggregate_grade([_grade(1), _grade(0)], entries, stimulus_name="s", trajectory_id="t")
    assert grade.score == pytest.approx(0.95)
    assert resolve_grade_pass(grade, threshold) is False
    assert counted_score(grade) == 0


FILE, OUTPUT = GraderEntry(type="file-exists"), GraderEntry(type="output-contains")
PROMPT, PANEL = GraderEntry(type="prompt"), GraderEntry(type="panel")
ERROR = GraderResult.error("no judge", kind="judge", name="e")


@pytest.mark.parametrize(
    ("pairs", "weights", "threshold", "passed", "score", "trial", "evidence"),
    [
        pytest.param(
            [(FILE, _grade(1)), (OUTPUT, _grade(0))],
            {"file-exists": 0.7, "output-contains": 0.3},
            0.7,
            False,
            0.7,
            True,
            "1/2 graders passed",
            id="VD-1",
        ),
        pytest.param(
            [(FILE, _grade(1)), (OUTPUT, _grade(0))], {}, None, False, 0.5, False, "1/2 graders passed", id="VD-2"
        ),
        pytest.param(
            [(FILE, _grade(1)), (FILE, _grade(1)), (OUTPUT, _grade(0))],
            {},
            0.65,
            False,
            0.6667,
            True,
            "2/3 graders passed",
            id="VD-3",
        ),
        pytest.param(
            [(FILE, _grade(1)), (FILE, _grade(1)), (GraderEntry(type="x", required=True), _grade(0))],
            {},
            0.5,
            False,
            0.6667,
            False,
            "2/3 graders passed",
            id="VD-4",
        ),
        pytest.param([(PROMPT, _grade(0.8, True))], {}, 0.9, True, 0.8, False, "1/1 graders passed", id="VD-5"),
        pytest.param([(PROMPT, _grade(0.8, True))], {}, None, True, 0.8, True, "1/1 graders passed", id="VD-6"),
        pytest.param(
            [(FILE, _grade(1)), (PROMPT, ERROR)],
            {},
            0.5,
            False,
            0.5,
            None,
            "1/2 graders passed, 1 error(s)",
            id="VD-7",
        ),
        pytest.param(
            [(FILE, _grade(1)), (PANEL, _grade(0.7, True, details=[_grade(1), ERROR]))],
            {},
            None,
            True,
            0.85,
            True,
            "2/2 graders passed",
            id="VD-8",
        ),
        pytest.param(
            [(GraderEntry(type="output-contains", name="greets"), _grade(1)), (OUTPUT, _grade(0))],
            {"greets": 3, "output-contains": 1},
            0.75,
            False,
            0.75,
            True,
            "1/2 graders passed",
            id="VD-9",
        ),
        pytest.param(
            [(FILE, _grade(1)), (GraderEntry(type="wall-time"), _grade(0.5, False))],
            {"file-exists": 1, "run-command": 5},
            0.7,
            False,
            0.75,
            True,
            "1/2 graders passed",
            id="VD-10",
        ),
    ],
)
def test_verdicts(
    pairs: list[tuple[GraderEntry, GraderResult]],
    weights: dict[str, float],
    threshold: float | None,
    passed: bool,
    score: float,
    trial: bool | None,
    evidence: str,
) -> None:
    entries, results = [entry for entry, _ in pairs], [result for _, result in pairs]
    grade = aggregate_grade(results, entries, weights=weights, stimulus_name="s", trajectory_id="t")
    assert (grade.passed, grade.evidence) == (passed, evidence)
    assert grade.score == pytest.approx(score, abs=1e-4)
    assert resolve_grade_pass(grade, threshold) is trial
    has_error = any(result is ERROR or result.details for result in results)
    assert has_grader_error(grade) is has_error
    assert (grade.status == "error") is (trial is None)
    assert grade.label == (None if trial is None else "correct" if passed else "incorrect")


@pytest.mark.parametrize(
    ("entry", "weight"),
    [
        (GraderEntry(type="t", name="n", weight=0.5), 0.5),
        (GraderEntry(type="t", name="n"), 2),
        (GraderEntry(type="t", name="other"), 3),
        (GraderEntry(type="t"), 3),
        (GraderEntry(type="unlisted"), 1),
        (GraderEntry(type="t", constraint="max_turns", required=True), 0),
        (GraderEntry(type="t", constraint="max_tokens", required=True), 4),
    ],
)
def test_weights(entry: GraderEntry, weight: float) -> None:
    assert resolve_weight(entry, {"n": 2, "t": 3, "constraints.max_tokens": 4}) == weight


def test_the_aggregate_can_be_judged_without_the_spec() -> None:
    results = [
        _grade(1).model_copy(update={"name": "a"}),
        _grade(0).model_copy(update={"name": "constraints.max_turns"}),
    ]
    entries = [GraderEntry(type="file-exists"), GraderEntry(type="turn-count", constraint="max_turns", required=True)]
    grade = aggregate_grade(
        results, entries, weights={"file-exists": 2}, stimulus_name="s", trajectory_id="t", timestamp="now"
    )
    assert grade.metadata == {"requiredPassed": False, "weights": {"a": 2, "constraints.max_turns": 0}}
    assert (grade.name, grade.kind, grade.score) == ("trajectory-grade", "code", 1)
    assert (grade.stimulus_name, grade.trajectory_id, grade.timestamp) == ("s", "t", "now")
    assert resolve_grade_pass(grade) is False


def test_no_results_make_no_grade() -> None:
    with pytest.raises(ValueError, match="without graders"):
        aggregate_grade([], [], stimulus_name="s", trajectory_id="t")


def test_scores_of_stimuli_and_skills() -> None:
    error = GraderResult.error("x", name="trajectory-grade")
    unmet = _grade(0.9, metadata={"requiredPassed": False})
    first = compute_stimulus_score("a", [_grade(1), error, unmet], 0.5)
    empty = compute_stimulus_score("b", [error], 0.5)
    assert first.aggregate_score == 0.5
    assert (first.multi_trial.k, first.flaky, len(first.trial_results)) == (2, True, 3)
    assert empty.aggregate_score is None
    skill = compute_skill_score([first, empty, compute_stimulus_score("c", [_grade(0.9, True)], 0.5)], 0.7)
    assert skill.overall_score == pytest.approx(0.7)
    assert skill.passed
    assert not compute_skill_score([empty], 0).passed


def test_a_mean_does_not_depend_on_order() -> None:
    scores = [0.1, 0.7, 0.3, 1e-9, 0.9]
    assert trial_score(scores, [1] * 5) == trial_score(scores[::-1], [1] * 5)
