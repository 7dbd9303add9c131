"""What a trial becomes: properties, and pass, failure, error or skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import ErrorInfo, GraderResult
from vally.testing import trial_result

Report = Callable[..., Any]
Grader = Callable[..., GraderResult]
KEYS = ["threshold", "model", "executor", "variant", "evalFile", "runId", "passed", "overallScore"]


def outcome(made: Any) -> Any:
    """The last child of the only test case, unless that are its properties."""
    (case,) = made.cases
    children = [child for child in case if child.tag != "properties"]
    return children[0] if children else None


@pytest.mark.parametrize(("total", "name"), [(1, "s"), (2, "s (trial 1)")])
def test_the_number_of_the_trial(report: Report, grader: Grader, total: int, name: str) -> None:
    assert report(trial_result("s", grader("g"), total_trials=total)).cases[0].attrib["name"] == name


@pytest.mark.parametrize(
    ("milliseconds", "time"), [(0, "0.000"), (1, "0.001"), (8300, "8.300"), (3_600_001, "3600.001")]
)
def test_time_has_three_decimals(report: Report, grader: Grader, milliseconds: int, time: str) -> None:
    made = report(trial_result("s", grader("g"), duration_ms=milliseconds))
    assert made.cases[0].attrib["time"] == made.suites[0].attrib["time"] == made.root.attrib["time"] == time


def test_the_threshold_is_first_and_only_there_when_one_applies(report: Report, grader: Grader) -> None:
    assert list(report(trial_result("s", grader("g")), threshold=0.5).suite_properties()) == [*KEYS, "g"]


def test_without_a_threshold_there_is_no_overall_score(report: Report, grader: Grader) -> None:
    assert list(report(trial_result("s", grader("g"))).suite_properties()) == [*KEYS[1:-1], "g"]


@pytest.mark.parametrize(
    ("scores", "mean"),
    [([1.0], "1"), ([1.0, 0.0, 0.0], "0.3333"), ([0.5, 0.75], "0.625"), ([0.0], "0"), ([0.00004], "0"), ([10.0], "10")],
)
def test_mean_scores_of_graders(report: Report, scores: list[float], mean: str) -> None:
    results = [
        trial_result(
            "s", GraderResult.verdict(True, "", score=score, name="g"), trial_index=index, total_trials=len(scores)
        )
        for index, score in enumerate(scores)
    ]
    assert report(*results).suite_properties()["g"] == mean


def test_a_threshold_is_written_as_given(report: Report, grader: Grader) -> None:
    assert report(trial_result("s", grader("g")), threshold=0.123456).suite_properties()["threshold"] == "0.123456"


def test_graders_named_as_a_property_of_the_suite(report: Report, grader: Grader) -> None:
    made = report(trial_result("s", *(grader(key) for key in KEYS), grader("other")))
    assert list(made.suite_properties())[-9:] == [*(f"grader:{key}" for key in KEYS), "other"]
    assert "threshold" not in made.suite_properties()
    names = [item.attrib["name"] for item in made.cases[0].iter("property")]
    assert names == [*(f"grader:{key}" for key in KEYS), "other"]


def test_a_grader_without_verdict_has_no_score(report: Report, grader: Grader) -> None:
    first = trial_result("s", grader("g", None), grader("h"), total_trials=2)
    second = trial_result("s", grader("g"), grader("h"), trial_index=1, total_trials=2)
    made = report(first, second)
    assert made.suite_properties()["g"] == "1"
    assert [item.attrib["name"] for item in made.cases[0].iter("property")] == ["h"]


def test_a_failure_names_its_graders(report: Report, grader: Grader) -> None:
    inner = [grader("fine"), grader("inner", False, "no\r\nsuch\tthing", details=[grader("deep", None, "no reply")])]
    graders = [grader("a"), grader("b", False, "not b", details=inner), grader("c", False, " \n not c")]
    element = outcome(report(trial_result("s", *graders)))
    assert (element.tag, element.attrib["type"]) == ("failure", "grader-failure")
    assert element.attrib["message"] == "2 of 3 graders failed (score 0.33)"
    assert element.text == "b: not b\n  inner: no such thing\n    deep: no reply\nc: not c"


def test_a_score_below_the_threshold_without_a_failed_grader(report: Report) -> None:
    element = outcome(report(trial_result("s", GraderResult.verdict(True, "", score=0.5, name="g")), threshold=0.9))
    assert element.attrib == {"type": "grader-failure", "message": "score 0.50 below threshold 0.9"}
    assert element.text is None


def test_the_verdict_is_that_of_the_threshold(report: Report, grader: Grader) -> None:
    assert outcome(report(trial_result("s", grader("a"), grader("b", False)), threshold=0.5)) is None


@pytest.mark.parametrize(
    ("info", "type_"),
    [(None, "executor-error"), (ErrorInfo(message="", code="provider-error"), "provider-error")],
)
def test_an_execution_error(report: Report, info: ErrorInfo | None, type_: str) -> None:
    element = outcome(report(trial_result("s", status="error", error="is down", error_info=info)))
    assert (element.tag, element.attrib, element.text) == ("error", {"type": type_, "message": "is down"}, None)


def test_a_grader_error_that_leaves_no_verdict(report: Report, grader: Grader) -> None:
    element = outcome(report(trial_result("s", grader("a"), grader("b", None, "no judge"), grader("c", False))))
    assert element.tag == "error"
    assert element.attrib == {"type": "grader-error", "message": "1/3 graders passed, 1 error(s)"}
    assert element.text == "b: no judge"


def test_a_nested_grader_error_leaves_the_verdict(report: Report, grader: Grader) -> None:
    assert outcome(report(trial_result("s", grader("panel", details=[grader("judge", None)])))) is None


@pytest.mark.parametrize(("reason", "message"), [("fail-fast", "fail-fast"), (None, "no reason given")])
def test_a_skipped_trial(report: Report, reason: str | None, message: str) -> None:
    element = outcome(report(trial_result("s", status="skipped", skip_reason=reason)))
    assert (element.tag, element.attrib) == ("skipped", {"message": message})


def test_without_grading_a_trial_counts_as_skipped(report: Report) -> None:
    made = report(trial_result("s"), trial_result("e", status="error", error="down"), skip_grade=True)
    assert [[child.tag for child in case] for case in made.cases] == [["skipped"], ["error"]]
    assert made.cases[0].find("skipped").attrib == {"message": "not graded"}
    assert made.root.attrib["skipped"] == "1"


def test_a_stimulus_without_graders_passes(report: Report) -> None:
    assert outcome(report(trial_result("s"))) is None


def test_a_trial_without_a_file(report: Report, grader: Grader) -> None:
    made = report(trial_result("s", grader("g"), eval_file_path=""))
    assert "file" not in made.cases[0].attrib
    assert "evalFile" not in made.suite_properties()
