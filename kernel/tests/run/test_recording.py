"""A trial result as it is written: plain and without secrets."""

from __future__ import annotations

import json
import math

from vally.model.jsonio import encode_line
from vally.model.metrics import compute_metrics
from vally.model.results import (
    ErrorInfo,
    EvalSummary,
    GraderResult,
    RunSummary,
    TrialResult,
    load_trial_result,
)
from vally.model.trajectory import Event, Trajectory, dump_record
from vally.run.recording import redacted_record, redacted_trial
from vally.run.redaction import Redactor

TOKEN = "abcdefghijkl"
REDACTOR = Redactor({"MY_TOKEN": TOKEN})


def _trial(**fields: object) -> TrialResult:
    base = {
        "run_id": "r",
        "item_id": "i",
        "eval_name": "e",
        "eval_file_path": "p",
        "stimulus": "s",
        "trial_index": 0,
        "total_trials": 1,
        "status": "success",
    }
    return TrialResult.model_validate({**base, **fields})


def test_nothing_secret_is_left() -> None:
    trajectory = Trajectory(
        stimulus={"environment": {"env": {"A": "x"}}, "prompt": TOKEN},
        events=[Event(type="tool_result", data={"result": f"{TOKEN} {TOKEN}"})],
        output=f"said {TOKEN}",
    )
    grade = GraderResult.verdict(True, f"found {TOKEN}", name="g")
    record = redacted_trial(_trial(trajectory=trajectory, grade_result=grade, error=TOKEN), REDACTOR)
    assert TOKEN not in json.dumps(record)
    assert record["trajectory"]["stimulus"]["environment"] == {"env": {"A": "<redacted>"}}
    assert record["trajectory"]["redactions"] == 4
    assert record["gradeResult"]["evidence"] == "found <redacted:MY_TOKEN>"
    assert trajectory.output == f"said {TOKEN}"
    assert trajectory.stimulus["environment"] == {"env": {"A": "x"}}


def test_only_texts_for_people_lose_patterns() -> None:
    key = "sk-" + "b" * 30
    result = _trial(
        trajectory=Trajectory(output=key),
        error=key,
        warnings=[key],
        error_info=ErrorInfo(message=key, code="c", details={"url": "https://a:b@host"}),
    )
    record = redacted_trial(result, REDACTOR)
    assert record["trajectory"]["output"] == key
    assert "redactions" not in record["trajectory"]
    assert (record["error"], record["warnings"]) == ("<redacted>", ["<redacted>"])
    assert record["errorInfo"]["message"] == "<redacted>"
    assert record["errorInfo"]["details"] == {"url": "https://<redacted>@host"}


def test_stored_metrics_are_those_of_the_events() -> None:
    events = [Event(type="turn_end"), Event(type="tool_call", data={"toolName": "x"})]
    record = redacted_trial(_trial(trajectory=Trajectory(events=events)), REDACTOR)
    stored = load_trial_result(record).trajectory
    assert stored is not None
    assert record["trajectory"]["metrics"] == dump_record(compute_metrics(stored.events))


def test_bad_token_counts_make_one_warning() -> None:
    events = [Event(type="token_usage", data={"inputTokens": -1, "outputTokens": "7"})] * 3
    once = redacted_trial(_trial(trajectory=Trajectory(events=events)), REDACTOR)
    assert once["warnings"] == ["6 token count(s) are not whole numbers of at least 0 and count as 0"]
    assert redacted_trial(load_trial_result(once), REDACTOR) == once


def test_numbers_that_are_not_finite_are_named_in_order() -> None:
    result = _trial(
        grade_result=GraderResult(name="g", passed=True, score=1, metadata={"x": math.inf}), tags={"t": "1"}
    )
    record = redacted_trial(result, REDACTOR)
    assert record["warnings"] == ["the number at /gradeResult/metadata/x is not finite and was recorded as null"]
    assert list(record).index("warnings") < list(record).index("tags")


def test_a_record_read_back_and_recorded_again_is_the_same() -> None:
    trajectory = Trajectory(output=TOKEN, events=[Event(type="custom", data={"t": TOKEN})])
    once = redacted_trial(_trial(trajectory=trajectory, extra_key={"a": 1.5}), REDACTOR)
    twice = redacted_trial(load_trial_result(once), REDACTOR)
    assert encode_line(twice) == encode_line(once)


def test_trials_without_trajectory() -> None:
    record = redacted_trial(_trial(status="skipped", skip_reason="cancelled"), REDACTOR)
    assert record["trajectory"] is None
    assert list(record)[-3:] == ["trajectory", "gradeResult", "skipReason"]


def test_run_summaries() -> None:
    evaluation = EvalSummary(name=TOKEN, eval_file_path="p", passed=True, overall_score=1.0, threshold=0.5)
    summary = RunSummary(run_id="r", passed=True, started_at="a", completed_at="b", evals=[evaluation])
    record = redacted_record(summary, REDACTOR)
    assert record["evals"][0]["name"] == "<redacted:MY_TOKEN>"
    assert json.dumps(record["evals"][0]["overallScore"]) == "1"
