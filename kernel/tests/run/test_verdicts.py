"""Verdicts of evals and the summary of a run."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import pytest

from vally.model.jsonio import record_line
from vally.model.results import EvalSummary, GraderResult, JudgeUsage, TrialResult
from vally.model.trajectory import Cost, Metrics, TokenUsage, Trajectory
from vally.run.reporting import PlannedEval, PlannedStimulus
from vally.run.summary import RunTally, TrialFacts

FAIL_FAST = "fail-fast"
NOTHING = "nothing to do here"


def _planned(
    stimuli: dict[str, int],
    *,
    threshold: float | None = None,
    pass_rate: float | None = None,
    index: int = 0,
    graders: int = 1,
) -> PlannedEval:
    return PlannedEval(
        index=index,
        name=f"eval-{index}",
        eval_file_path="e/eval.yaml",
        variant="main",
        model="m",
        executor="mock",
        judge_model="j",
        threshold=threshold,
        pass_rate=pass_rate,
        stimuli=tuple(
            PlannedStimulus(name=name, line=None, grader_count=graders, trials=trials)
            for name, trials in stimuli.items()
        ),
    )


def _grade(score: float, passed: bool) -> GraderResult:
    return GraderResult.verdict(passed, "", score=score, name="trajectory-grade", details=[])


def _result(stimulus: str, index: int, outcome: Any, **fields: Any) -> TrialResult:
    """`outcome`: "P" passes with 1, a number is a score that fails, "E" errs, "G" has a grader error, text skips."""
    base: dict[str, Any] = {
        "run_id": "r",
        "item_id": f"{stimulus}-{index}",
        "eval_name": "e",
        "eval_file_path": "e/eval.yaml",
        "stimulus": stimulus,
        "trial_index": index,
        "total_trials": 1,
        "status": "success",
        **fields,
    }
    if outcome == "E":
        return TrialResult(**{**base, "status": "error", "error": "boom"})
    if outcome == "G":
        return TrialResult(**base, grade_result=GraderResult.error("x", name="trajectory-grade"))
    if outcome == "P":
        return TrialResult(**base, grade_result=_grade(1, True))
    if isinstance(outcome, str):
        return TrialResult(**{**base, "status": "skipped", "skip_reason": outcome})
    return TrialResult(**base, grade_result=None if outcome is None else _grade(outcome, outcome == 1))


def _tally(stimuli: dict[str, list[Any]], *, planned: dict[str, int] | None = None, **rules: Any) -> RunTally:
    threshold, pass_rate = rules.pop("threshold", None), rules.pop("pass_rate", None)
    graders, graded = rules.pop("graders", 1), rules.pop("graded", True)
    counts = planned or {name: len(outcomes) for name, outcomes in stimuli.items()}
    planned_eval = _planned(counts, threshold=threshold, pass_rate=pass_rate, graders=graders)
    tally = RunTally([planned_eval], graded=graded)
    for name, outcomes in stimuli.items():
        for index, outcome in enumerate(outcomes):
            tally.add(TrialFacts.from_result(_result(name, index, outcome), threshold))
    return tally


P, E, G = "P", "E", "G"


@pytest.mark.parametrize(
    ("threshold", "pass_rate", "stimuli", "overall", "run", "passed", "reason"),
    [
        pytest.param(0.8, None, {"a": [P], "b": [0.6]}, 0.8, "2/2", True, "score 0.80 >= 0.80", id="EV-1"),
        pytest.param(0.75, None, {"a": [0.7], "b": [0.7]}, 0.7, "2/2", False, "score 0.70 < 0.75", id="EV-2"),
        pytest.param(None, None, {"a": [P, P], "b": [P]}, None, "2/2", True, "all graders passed", id="EV-3"),
        pytest.param(None, None, {"a": [P, 0.5], "b": [P]}, None, "2/2", False, "1 of 3 trials failed", id="EV-4"),
        pytest.param(
            0.8,
            None,
            {"a": [P, P, E], "b": [P]},
            1,
            "2/2",
            False,
            "score 1.00 >= 0.80, but 1 trial had an execution error",
            id="EV-5",
        ),
        pytest.param(
            0.5,
            None,
            {"a": [P], "b": [E]},
            1,
            "1/2",
            False,
            "score 1.00 >= 0.50, but 1 trial had an execution error",
            id="EV-6",
        ),
        pytest.param(
            0.5,
            None,
            {"a": [P], "b": [G, P]},
            1,
            "2/2",
            False,
            "score 1.00 >= 0.50, but 1 trial had a grader error",
            id="EV-7",
        ),
        pytest.param(
            0.5,
            None,
            {"a": [NOTHING], "b": [NOTHING]},
            None,
            "0/2",
            False,
            "no stimulus has a gradable trial",
            id="EV-8",
        ),
        pytest.param(0.5, None, {"a": [P, 0, 0], "b": [P]}, 0.666667, "2/2", True, "score 0.67 >= 0.50", id="EV-9"),
        pytest.param(0.5, None, {"a": [P], "b": [NOTHING]}, 1, "1/2", True, "score 1.00 >= 0.50", id="EV-10"),
        pytest.param(
            0.5,
            None,
            {"a": [P], "b": [FAIL_FAST]},
            1,
            "1/2",
            False,
            "score 1.00 >= 0.50, but the eval is partial",
            id="EV-11",
        ),
        pytest.param(None, 0.6, {"a": [P, P, 0], "b": [P]}, None, "2/2", True, "pass rate 0.67 >= 0.60", id="EV-12"),
        pytest.param(
            None,
            0.7,
            {"a": [P, P, 0], "b": [P]},
            None,
            "2/2",
            False,
            "pass rate 0.67 < 0.70 of stimulus 'a'",
            id="pass rate",
        ),
        pytest.param(
            0.5,
            0.9,
            {"a": [0.9]},
            0.9,
            "1/1",
            True,
            "score 0.90 >= 0.50, pass rate 1.00 >= 0.90",
            id="both",
        ),
        pytest.param(0.95, 0.5, {"a": [0.9]}, 0.9, "1/1", False, "score 0.90 < 0.95", id="both, score too small"),
        pytest.param(
            None, None, {"a": [None]}, None, "0/1", False, "stimulus 'a' has no gradable trial", id="ungraded"
        ),
        pytest.param(
            None,
            None,
            {"a": [P], "b": [None]},
            None,
            "1/2",
            False,
            "all graders passed, but stimulus 'b' has no gradable trial",
            id="one ungraded",
        ),
        pytest.param(
            None, None, {"a": [E, E]}, None, "0/1", False, "2 trials had an execution error", id="only errors"
        ),
        pytest.param(
            None,
            None,
            {"a": [E, 0.5, E]},
            None,
            "1/1",
            False,
            "1 of 3 trials failed, and 2 trials had an execution error",
            id="a failure among errors",
        ),
        pytest.param(
            0.9,
            None,
            {"a": [E, 0.5]},
            0.5,
            "1/1",
            False,
            "score 0.50 < 0.90, and 1 trial had an execution error",
            id="a low score and an error",
        ),
        pytest.param(
            0.5,
            None,
            {"a": [P, E, G], "b": [P, G, FAIL_FAST]},
            1,
            "2/2",
            False,
            "score 1.00 >= 0.50, but 1 trial had an execution error, 2 trials had a grader error and the eval is "
            "partial",
            id="several problems",
        ),
        pytest.param(0.7, None, {"a": [0.699]}, 0.699, "1/1", False, "score 0.699 < 0.7", id="digits that differ"),
    ],
)
def test_verdict_of_an_eval(
    threshold: float | None,
    pass_rate: float | None,
    stimuli: dict[str, list[Any]],
    overall: float | None,
    run: str,
    passed: bool,
    reason: str,
) -> None:
    summary = _tally(stimuli, threshold=threshold, pass_rate=pass_rate).eval_summary(0)
    assert summary.passed is passed
    assert summary.reason == reason
    assert summary.overall_score == (overall if overall is None else pytest.approx(overall, abs=1e-6))
    assert f"{summary.stimuli_run}/{summary.stimuli_total}" == run
    assert summary.scoring_applied is (threshold is not None)
    assert (summary.threshold, summary.required_pass_rate) == (threshold, pass_rate)
    assert summary.partial is (True if any(FAIL_FAST in outcomes for outcomes in stimuli.values()) else None)


@pytest.mark.parametrize(
    ("stimuli", "rules", "words"),
    [
        ({"a": [P, 0], "b": [E], "c": [NOTHING], "d": [None], "e": [G]}, {}, "fail error skipped ungraded error"),
        ({"a": [P, 0.5], "b": [E, 0.4]}, {"threshold": 0.75}, "pass fail"),
        ({"a": [P, 0], "b": [P, 0, 0]}, {"pass_rate": 0.5}, "pass fail"),
        ({"a": [0.8, 0.8], "b": [P, 0.2]}, {"threshold": 0.7, "pass_rate": 1}, "pass fail"),
    ],
)
def test_verdicts_of_stimuli(stimuli: dict[str, list[Any]], rules: dict[str, Any], words: str) -> None:
    stats = _tally(stimuli, **rules).eval_summary(0).stats
    assert stats is not None
    assert " ".join(stimulus["verdict"] for stimulus in stats["stimuli"]) == words


@pytest.mark.parametrize(
    ("rules", "outcome", "passed", "reason"),
    [
        ({"graders": 0}, None, True, "no graders"),
        ({"graders": 0}, E, False, "1 trial had an execution error"),
        ({"graded": False}, None, True, "not graded"),
        ({"graded": False}, E, False, "1 trial had an execution error"),
        ({"graded": False}, FAIL_FAST, False, "the eval is partial"),
    ],
)
def test_evals_without_grades(rules: dict[str, Any], outcome: Any, passed: bool, reason: str) -> None:
    summary = _tally({"a": [outcome]}, **rules).eval_summary(0)
    assert (summary.passed, summary.reason) == (passed, reason)


def test_stimuli_without_graders_take_no_part() -> None:
    planned = PlannedEval(
        index=0,
        name="e",
        eval_file_path="e",
        variant="main",
        model="m",
        executor="x",
        judge_model="j",
        threshold=None,
        stimuli=(
            PlannedStimulus(name="a", line=1, grader_count=1, trials=1),
            PlannedStimulus(name="b", line=2, grader_count=0, trials=1),
        ),
    )
    tally = RunTally([planned])
    tally.add(TrialFacts.from_result(_result("a", 0, P), None))
    tally.add(TrialFacts.from_result(_result("b", 0, None), None))
    summary = tally.eval_summary(0)
    assert (summary.passed, summary.stimuli_run, summary.stimuli_total) == (True, 1, 2)


def test_statistics_of_an_eval() -> None:
    summary = _tally({"a": [P, 0.5, E], "b": [P, NOTHING], "c": [G]}, threshold=0.6).eval_summary(0)
    assert summary.stats is not None
    first, second, third = summary.stats.pop("stimuli")
    assert first == {
        "name": "a",
        "verdict": "pass",
        "score": 0.75,
        "trials": 3,
        "passed": 1,
        "errors": 1,
        "skipped": 0,
        "passRate": 0.5,
        "passAtK": 1,
        "passToTheK": 0.25,
        "flaky": True,
        "flakinessPercent": 50,
    }
    assert (second["skipped"], second["passRate"]) == (1, 1)
    assert (third["score"], third["passRate"], third["passAtK"], third["errors"]) == (None, None, None, 1)
    assert summary.stats["trials"] == 6
    assert summary.stats["passRate"] == pytest.approx(2 / 3)
    assert summary.stats["passRateCi"]["low"] == pytest.approx(0.207660, abs=1e-6)
    assert summary.stats["score"]["mean"] == 0.875
    assert summary.stats["score"]["high"] == 1
    assert list(summary.stats) == ["trials", "passRate", "passRateCi", "score"]


def test_statistics_without_values_are_null() -> None:
    stats = _tally({"a": [E]}).eval_summary(0).stats
    assert stats is not None
    assert stats["passRateCi"] == {"low": None, "high": None}
    assert stats["score"] == {"mean": None, "stdError": None, "low": None, "high": None}


def test_the_first_error_in_plan_order_is_told() -> None:
    tally = RunTally([_planned({"a": 1, "b": 1})])
    for name in ("b", "a"):
        facts = TrialFacts.from_result(_result(name, 0, E).model_copy(update={"error": f"in {name}"}), None)
        tally.add(facts)
    assert tally.eval_summary(0).error == "in a"


@pytest.mark.parametrize(
    ("evidence", "told"),
    [("timed out", "quality: timed out"), ("e" * 4_096 + "timed out", f"quality: {'e' * 57}…{'e' * 124}timed out")],
    ids=["short", "long"],
)
def test_the_grader_that_reached_no_verdict_is_told(evidence: str, told: str) -> None:
    broken = GraderResult.error(evidence, name="quality")
    grade = GraderResult.error("1/2", name="trajectory-grade", details=[_grade(1, True), broken])
    tally = RunTally([_planned({"a": 1})])
    tally.add(TrialFacts.from_result(_result("a", 0, P).model_copy(update={"grade_result": grade}), None))
    assert tally.eval_summary(0).error == told


def _paid(
    stimulus: str, index: int, outcome: Any, tokens: int = 10, amount: float = 0.1, unit: str = "usd"
) -> TrialResult:
    usage = TokenUsage(total_tokens=tokens, cost=Cost(provider="p", unit=unit, amount=amount))
    trajectory = Trajectory(metrics=Metrics(token_usage=usage, wall_time_ms=5))
    judge = JudgeUsage(total_tokens=3, cost=Cost(provider="j", unit="usd", amount=0.05))
    return _result(stimulus, index, outcome, trajectory=trajectory, judge_usage=judge)


def test_totals_and_budgets() -> None:
    tally = RunTally([_planned({"a": 2, "b": 3}, threshold=0.5)])
    results = [
        _paid("b", 0, E, unit="nano-aiu", amount=2e9),
        _paid("a", 0, P),
        _paid("a", 1, 0.2),
        _paid("b", 1, G),
        _paid("b", 2, NOTHING, tokens=5),
    ]
    for result in results:
        tally.add(TrialFacts.from_result(result, 0.5))
    totals = json.loads(record_line(tally.totals()))
    assert totals == {
        "trials": 5,
        "passed": 1,
        "failed": 1,
        "errors": 2,
        "skipped": 1,
        "flakyStimuli": 1,
        "totalTokens": 60,
        "cost": [{"unit": "usd", "amount": pytest.approx(0.65)}, {"unit": "nano-aiu", "amount": 2_000_000_000}],
    }
    assert tally.tokens == 60
    assert tally.cost("usd") == pytest.approx(0.65)
    assert tally.cost("aiu") == pytest.approx(2)
    assert tally.cost("eur") == 0


def test_of_two_records_of_one_trial_the_later_counts() -> None:
    tally = RunTally([_planned({"a": 1})])
    tally.add(TrialFacts.from_result(_paid("a", 0, E, tokens=100), None))
    tally.add(TrialFacts.from_result(_paid("a", 0, P, tokens=1), None))
    assert (tally.tokens, tally.totals().passed, tally.totals().errors) == (4, 1, 0)


def test_the_run_summary() -> None:
    tally = RunTally([_planned({"a": 1}), _planned({"b": 1}, index=1), _planned({"never": 0}, index=2)])
    tally.add(TrialFacts.from_result(_result("a", 0, P), None))
    tally.add(TrialFacts.from_result(_result("b", 0, P), None, eval_index=1))
    summary = tally.run_summary(run_id="r", started_at="s", completed_at="c", duration_ms=5, jsonl_path="p")
    assert (summary.passed, summary.partial, summary.had_execution_errors, summary.status) == (
        True,
        False,
        False,
        "completed",
    )
    assert [evaluation.name for evaluation in summary.evals] == ["eval-0", "eval-1"]
    record = json.loads(record_line(summary))
    assert record["stopReason"] is None
    assert record["jsonlPath"] == "p"


@pytest.mark.parametrize(
    ("outcome", "stop_reason", "passed", "partial", "errors"),
    [
        (P, None, True, False, False),
        (P, "interrupted", False, True, False),
        ("cancelled", None, False, True, False),
        (E, None, False, False, True),
        (G, None, False, False, True),
    ],
)
def test_what_a_run_came_to(outcome: str, stop_reason: str | None, passed: bool, partial: bool, errors: bool) -> None:
    summary = _tally({"a": [outcome]}).run_summary(run_id="r", started_at="s", stop_reason=stop_reason)
    assert (summary.passed, summary.partial, summary.had_execution_errors) == (passed, partial, errors)


def test_trials_that_are_missing_make_a_run_partial() -> None:
    summary = _tally({"a": [P]}, planned={"a": 2}).run_summary(run_id="r", started_at="s")
    assert (summary.partial, summary.passed, summary.evals[0].partial) == (True, False, True)


def test_nested_grader_errors_are_errors_but_no_verdict() -> None:
    grade = _grade(1, True).model_copy(update={"details": [_grade(1, True), GraderResult.error("x", name="judge")]})
    tally = RunTally([_planned({"a": 1})])
    tally.add(TrialFacts.from_result(_result("a", 0, None).model_copy(update={"grade_result": grade}), None))
    summary = tally.run_summary(run_id="r", started_at="s")
    assert (summary.passed, summary.had_execution_errors) == (True, True)


def test_a_failed_required_grader_contributes_nothing() -> None:
    grade = _grade(0.9, False).model_copy(update={"metadata": {"requiredPassed": False}})
    facts = TrialFacts.from_result(_result("a", 0, None).model_copy(update={"grade_result": grade}), 0.5)
    assert (facts.score, facts.passed, facts.required_passed, facts.bad) == (0, False, False, True)


@pytest.mark.parametrize(("outcome", "bad"), [(P, False), (0.5, True), (E, True), (G, True), (NOTHING, False)])
def test_what_stops_a_run_that_fails_fast(outcome: Any, bad: bool) -> None:
    assert TrialFacts.from_result(_result("a", 0, outcome), None).bad is bad


def test_the_order_of_completion_changes_nothing() -> None:
    results = [_paid("a", 0, 0.1), _paid("a", 1, 0.7), _paid("b", 0, 0.3), _paid("b", 1, E, amount=0.7)]
    lines = set()
    for order in itertools.permutations(results):
        tally = RunTally([_planned({"a": 2, "b": 2}, threshold=0.5)])
        for result in order:
            tally.add(TrialFacts.from_result(result, 0.5))
        lines.add(record_line(tally.run_summary(run_id="r", started_at="s", completed_at="c")))
    assert len(lines) == 1


def test_duration_is_the_span_of_the_trials() -> None:
    tally = RunTally([_planned({"a": 2})])
    for index, (start, duration) in enumerate([("00:00:00.500", 1000), ("00:00:01.000", 3000)]):
        result = _result("a", index, P, started_at=f"2026-01-01T{start}Z", duration_ms=duration)
        tally.add(TrialFacts.from_result(result, None))
    assert tally.eval_summary(0).duration_ms == 3500


def test_a_pause_between_two_processes_is_left_out_of_the_duration() -> None:
    tally = RunTally([_planned({"a": 3}), _planned({"b": 1}, index=1)])
    ran = [("a", 0, "01T00:00:00", 1000), ("b", 0, "01T00:00:00.500", 2000), ("a", 1, "01T00:00:02.500", 500)]
    for name, index, start, duration in [*ran, ("a", 2, "03T00:00:00", 4000)]:
        result = _result(name, index, P, started_at=f"2026-01-{start}Z", duration_ms=duration)
        tally.add(TrialFacts.from_result(result, None, eval_index=int(name == "b")))
    assert [tally.eval_summary(index).duration_ms for index in (0, 1)] == [7000, 2000]


def test_without_starts_durations_are_summed() -> None:
    tally = RunTally([_planned({"a": 2})])
    for index in range(2):
        tally.add(TrialFacts.from_result(_result("a", index, P, duration_ms=100), None))
    assert tally.eval_summary(0).duration_ms == 200


def test_facts_are_small_whatever_the_trajectory() -> None:
    result = _paid("a", 0, E).model_copy(update={"error": "x" * 100_000})
    facts = TrialFacts.from_result(result, None)
    assert sum(sys.getsizeof(getattr(facts, name)) for name in facts.__slots__) < 2_000


def test_an_unplanned_eval_is_refused() -> None:
    tally = RunTally([_planned({"a": 1})])
    with pytest.raises(KeyError):
        tally.add(TrialFacts.from_result(_result("a", 0, P), None, eval_index=7))


def test_summaries_are_records() -> None:
    summary = _tally({"a": [P]}, threshold=0.5).eval_summary(0)
    assert isinstance(summary, EvalSummary)
    keys = " ".join(json.loads(record_line(summary)))
    assert keys == (
        "name evalFilePath variant model passed scoringApplied overallScore threshold stimuliRun stimuliTotal "
        "durationMs reason stats"
    )


def test_a_trial_that_is_run_again_takes_no_time_of_its_earlier_process() -> None:
    tally = RunTally([_planned({"a": 3})])
    for index in range(3):
        begun = f"2026-07-24T0{index}:00:00.000Z"
        told = _result("a", index, P).model_copy(update={"started_at": begun, "duration_ms": 1000})
        tally.add(TrialFacts.from_result(told, None))
    assert tally.eval_summary(0).duration_ms == 3000
    again = _result("a", 1, P).model_copy(update={"started_at": "2026-07-25T00:00:00.000Z", "duration_ms": 50})
    tally.add(TrialFacts.from_result(again, None, ended_ms=5000.0))
    assert tally.eval_summary(0).duration_ms == 2050
