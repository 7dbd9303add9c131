"""Which graders a golden input puts to the test, and what their results then mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from vally import EvalSpec, Event, GraderEntry, GraderResult, GraderSpec, Trajectory, aggregate_grade
from vally.testing import plugin_host, stimulus, trial_result
from vally_command_oracle.golden import Golden
from vally_command_oracle.gradable import Gradable, gradable
from vally_command_oracle.results import Case, OracleResult, evaluate

PATCH = Golden(patch="x", kind="patch")
TRAJECTORY = Golden(trajectory=Trajectory(), kind="trajectory")
BOTH = Golden(patch="x", trajectory=Trajectory(), kind="patch+trajectory")


class Absent:
    def grade(self, _: object) -> GraderResult:
        raise AssertionError("not graded here")

    def asserts_absence(self, _: object) -> bool:
        return True


class Broken(Absent):
    def asserts_absence(self, _: object) -> bool:
        raise ValueError("no idea")


def record(name: str, factory: type = Absent, **facts: Any) -> GraderSpec:
    return GraderSpec(name=name, summary="s", factory=factory, **facts)


HOST = plugin_host(
    record("state", requires_workspace=True),
    record("said"),
    record("either", oracle="either"),
    record("never", oracle="none"),
    record("judged", requires_judge=True),
    record("broken", Broken),
    record("turns", turn=True, scope=True),
)


def sorted_out(golden: Golden, *entries: GraderEntry, baseline: bool = False, turns: int = 1) -> Gradable:
    given = stimulus(*["x"] * turns, graders=entries)
    return gradable(given, golden, HOST, Path(), baseline=baseline)


@pytest.mark.parametrize(
    ("golden", "graded", "others"),
    [
        (PATCH, ["state", "either"], {"said": "needs golden_trajectory", "never": "needs a run"}),
        (TRAJECTORY, ["said", "either"], {"state": "needs golden_patch or golden_command", "never": "needs a run"}),
        (BOTH, ["state", "said", "either"], {"never": "needs a run"}),
    ],
)
def test_the_input_decides(golden: Golden, graded: list[str], others: dict[str, str]) -> None:
    found = sorted_out(golden, *(GraderEntry(type=name) for name in ("state", "said", "either", "never")))
    assert [entry.type for entry in found.entries] == graded
    assert {entry.type: reason for entry, reason in found.others} == others


def test_a_judge_is_asked_about_golden_inputs_only() -> None:
    assert not sorted_out(TRAJECTORY, GraderEntry(type="judged")).others
    (other,) = sorted_out(TRAJECTORY, GraderEntry(type="judged"), baseline=True).others
    assert other[1] == "no judge is asked about a baseline"


def test_a_turn_must_be_in_the_trajectory() -> None:
    two = Trajectory(events=[Event(type="user_message", turn=turn) for turn in range(2)])
    golden = Golden(trajectory=two, kind="trajectory")
    entries = [GraderEntry(type="turns", turn=turn) for turn in (0, 1, 2)]
    found = sorted_out(golden, *entries, turns=3)
    assert [entry.turn for entry in found.entries] == [0, 1]
    assert [reason for _, reason in found.others] == ["golden_trajectory has no turn 2"]


def test_an_unknown_keyword_is_an_error_of_its_own() -> None:
    assert [entry.type for entry in sorted_out(PATCH, GraderEntry(type="nobody")).entries] == ["nobody"]


def test_what_passing_on_a_baseline_means() -> None:
    entries = [
        GraderEntry(type="said"),
        GraderEntry(type="broken"),
        GraderEntry(type="turns", scope="reviewer"),
    ]
    assert sorted_out(TRAJECTORY, *entries, baseline=True).absences == [True, False, True]


def outcome(
    passed: list[bool | None],
    absences: list[bool],
    *,
    baseline: bool,
    others: list[tuple[GraderEntry, str]] | None = None,
) -> OracleResult:
    """The outcome of graders that passed, failed, or (None) reached no verdict."""
    entries = [GraderEntry(type=f"g{number}") for number in range(len(passed))]
    results = [
        GraderResult.error("broke", name=entry.type)
        if value is None
        else GraderResult.verdict(value, "e", name=entry.type)
        for entry, value in zip(entries, passed, strict=True)
    ]
    grade = aggregate_grade(results, entries, stimulus_name="s", trajectory_id="t") if results else None
    spec = EvalSpec(name="e", path=Path("/e/eval.yaml"), display_path="eval.yaml")
    graders = Gradable(entries=entries, absences=absences, others=others or [])
    case = Case(spec=spec, stimulus=stimulus(name="s"), golden=BOTH, graders=graders)
    return evaluate(case, trial_result("s", grade_result=grade), baseline=baseline, skip_grade=False)


@pytest.mark.parametrize(
    ("passed", "expected"),
    [([True, True], True), ([True, False], False), ([True, None], False), ([], False)],
)
def test_a_golden_input_satisfies_every_grader(passed: list[bool | None], expected: bool) -> None:
    found = outcome(passed, [False] * len(passed), baseline=False)
    assert found.passed is expected
    assert (found.counted, found.graded) == (sum(value is True for value in passed), len(passed))


@pytest.mark.parametrize(
    ("passed", "absence", "expected", "trivial", "not_applicable"),
    [
        (True, True, True, [], ["g0"]),
        (True, False, False, ["g0"], []),
        (False, True, True, [], []),
        (False, False, True, [], []),
    ],
)
def test_a_baseline_satisfies_none(
    passed: bool, absence: bool, expected: bool, trivial: list[str], not_applicable: list[str]
) -> None:
    found = outcome([passed], [absence], baseline=True)
    record = found.record("run")
    assert record["passed"] is expected
    assert (record["trivial"], record["notApplicable"]) == (trivial, not_applicable)
    assert (record["mode"], record["goldenInput"]) == ("baseline", None)
    assert (record["gradeResult"] is None) is bool(not_applicable)


def test_an_error_on_a_baseline_is_no_failure() -> None:
    assert outcome([None], [True], baseline=True).passed is False


def test_results_that_say_nothing_are_left_out_of_the_grade() -> None:
    grade = outcome([True, False], [True, False], baseline=True).record("run")["gradeResult"]
    assert [item["name"] for item in grade["details"]] == ["g1"]
    assert (grade["passed"], grade["score"], grade["evidence"]) == (False, 0, "0/1 graders passed")


def test_a_baseline_of_judges_alone_has_nothing_to_control() -> None:
    judged = (GraderEntry(type="judged"), "no judge is asked about a baseline")
    assert outcome([], [], baseline=True, others=[judged]).passed
    assert not outcome([], [], baseline=True, others=[(GraderEntry(type="never"), "needs a run")]).passed


def test_what_did_not_run_is_an_error() -> None:
    base = outcome([True], [False], baseline=False)
    trial = trial_result("s", status="skipped", skip_reason="cancelled")
    record = evaluate(base.case, trial, baseline=False, skip_grade=False).record("run")
    assert (record["status"], record["passed"], record["error"]) == ("error", False, "cancelled")
    info = {"message": "no", "code": "golden-patch-failed", "phase": "running"}
    errored = trial_result("s", status="error", error="no", error_info=cast("Any", info))
    record = evaluate(base.case, errored, baseline=False, skip_grade=False).record("run")
    assert record["errorInfo"]["code"] == "golden-patch-failed"
