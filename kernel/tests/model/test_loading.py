"""Records read leniently, older shapes included."""

from __future__ import annotations

from typing import Any

import pytest

from vally.model.results import (
    load_grade,
    load_run_summary,
    load_trial_result,
)
from vally.model.trajectory import RecordError, dump_record, load_trajectory

MINIMAL = {"status": "success", "gradeResult": None, "trajectory": {"output": "x"}}


def test_the_least_trajectory() -> None:
    trajectory = load_trajectory({})
    assert (trajectory.id, trajectory.output, trajectory.events) == ("", "", [])
    assert trajectory.metrics is not None
    assert trajectory.metrics.turn_count == 0


def test_missing_metrics_are_computed_and_partial_ones_are_not_recorded() -> None:
    events = [{"type": "turn_end"}, {"type": "tool_call", "data": {"toolName": "a"}}]
    computed = load_trajectory({"events": events, "metrics": None}).metrics
    partial = load_trajectory({"events": events, "metrics": {"turnCount": 7, "toolCallCount": None}}).metrics
    assert computed is not None
    assert partial is not None
    assert (computed.turn_count, computed.tool_call_count) == (1, 1)
    assert (partial.turn_count, partial.tool_call_count, partial.token_usage) == (7, None, None)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({"events": {}}, "/events"),
        ({"events": [5]}, "/events/0"),
        ({"events": [{"type": "a"}, {"type": 5}]}, "/events/1/type"),
        ({"events": [{}]}, "/events/0/type"),
        ({"output": 5}, "/output"),
        ({"output": None}, "/output"),
    ],
)
def test_refused_trajectories(value: object, pointer: str) -> None:
    with pytest.raises(RecordError) as caught:
        load_trajectory(value)
    assert caught.value.where == pointer
    assert (pointer or "/") in caught.value.message


def test_pointers_start_where_the_caller_says() -> None:
    with pytest.raises(RecordError) as caught:
        load_trial_result({"status": "success", "trajectory": {"events": "x"}})
    assert caught.value.where == "/trajectory/events"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "new"}, {"type": "new", "data": {}}),
        ({"type": "a", "data": None, "timestamp": 1500}, {"type": "a", "timestamp": "1970-01-01T00:00:01.500Z"}),
        ({"type": "a", "turn": "1", "agentId": 5, "data": {"k": 1}}, {"type": "a", "data": {"k": 1}}),
        ({"type": "a", "turn": True, "x": [1]}, {"type": "a", "x": [1]}),
        ({"type": "a", "turn": 2, "agentName": "n"}, {"type": "a", "turn": 2, "agentName": "n"}),
    ],
)
def test_events(event: dict[str, Any], expected: dict[str, Any]) -> None:
    (found,) = load_trajectory({"events": [event]}).events
    assert dump_record(found) == {"data": {}, **expected}


def test_what_does_not_fit_counts_as_absent() -> None:
    value = {"events": [], "diff": 5, "workDir": None, "metadata": {"model": "m"}, "endReason": "odd", "unknown": [5]}
    record = dump_record(load_trajectory(value))
    assert "diff" not in record
    assert (record["metadata"], record["endReason"], record["unknown"]) == ({"model": "m"}, "odd", [5])
    assert value["diff"] == 5


def test_a_recorded_null_session_path_stays() -> None:
    assert dump_record(load_trajectory({"sessionPath": None}))["sessionPath"] is None
    assert "sessionPath" not in dump_record(load_trajectory({}))


@pytest.mark.parametrize(
    ("turn_diffs", "turns"),
    [
        (None, None),
        ("x", [-1]),
        ([{"turn": 0, "diff": ""}, {"turn": "1"}, 5], [0, -1, -1]),
        ([{"turn": 0, "diff": 7}], [0]),
    ],
)
def test_malformed_turn_diffs_are_not_lost(turn_diffs: Any, turns: list[int] | None) -> None:
    found = load_trajectory({"turnDiffs": turn_diffs}).turn_diffs
    assert (found and [entry.turn for entry in found]) == turns


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"passed": True}, {"name": "grader", "kind": "code", "passed": True, "score": 1.0, "evidence": ""}),
        (
            {"passed": False, "graderType": "prompt", "message": "why", "kind": "alien", "score": None},
            {
                "name": "prompt",
                "graderType": "prompt",
                "kind": "alien",
                "passed": False,
                "score": 0.0,
                "evidence": "why",
                "message": "why",
            },
        ),
        (
            {"name": "n", "passed": True, "score": 0.25, "details": [{"passed": False}, {"passed": True}]},
            {
                "name": "n",
                "kind": "code",
                "passed": True,
                "score": 0.25,
                "evidence": "",
                "details": [
                    {"name": "grader", "kind": "code", "passed": False, "score": 0.0, "evidence": ""},
                    {"name": "grader", "kind": "code", "passed": True, "score": 1.0, "evidence": ""},
                ],
            },
        ),
    ],
)
def test_older_grader_results(value: dict[str, Any], expected: dict[str, Any]) -> None:
    assert dump_record(load_grade(value)) == expected


@pytest.mark.parametrize(
    ("value", "pointer"),
    [("x", ""), ({}, "/passed"), ({"passed": True, "details": [{"passed": "yes"}]}, "/details/0/passed")],
)
def test_refused_grader_results(value: object, pointer: str) -> None:
    with pytest.raises(RecordError) as caught:
        load_grade(value)
    assert caught.value.where == pointer


def test_the_least_line() -> None:
    result = load_trial_result(MINIMAL)
    assert (result.type, result.status, result.variant, result.model) == ("trial-result", "success", "main", None)
    assert (result.trial_index, result.total_trials, result.grade_result) == (0, 1, None)
    assert result.item_id == "(unknown)::main::(unknown)::(unknown)::trial-0"
    assert dump_record(result)["model"] is None


@pytest.mark.parametrize("status", ["ok", None, "success"])
def test_older_words_for_success(status: str | None) -> None:
    assert load_trial_result({**MINIMAL, "status": status}).status == "success"


@pytest.mark.parametrize(
    "value",
    [
        5,
        {"type": "other"},
        {"status": "success"},
        {**MINIMAL, "status": "great"},
        {**MINIMAL, "trajectory": []},
    ],
)
def test_refused_lines(value: object) -> None:
    with pytest.raises(RecordError):
        load_trial_result(value)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"stimulus": "a"}, "a"),
        ({"stimulus": {"name": "a"}}, "a"),
        ({"trajectory": {"stimulus": {"name": "a"}}}, "a"),
        ({"gradeResult": {"passed": True, "stimulusName": "a"}}, "a"),
        ({}, "(unknown)"),
    ],
)
def test_the_stimulus_wherever_it_is_named(fields: dict[str, Any], name: str) -> None:
    result = load_trial_result({**MINIMAL, **fields})
    assert result.stimulus == name
    assert f"::{name}::" in result.item_id


def test_a_given_item_id_is_kept() -> None:
    assert load_trial_result({**MINIMAL, "itemId": "by eval name"}).item_id == "by eval name"


def test_a_grade_without_details_has_none() -> None:
    result = load_trial_result({**MINIMAL, "gradeResult": {"passed": True}})
    assert result.grade_result is not None
    assert result.grade_result.details == []


def test_an_old_run_summary() -> None:
    summary = load_run_summary({"type": "run-summary", "runId": "r", "passed": True})
    assert (summary.run_id, summary.passed, summary.evals) == ("r", True, [])
    with pytest.raises(RecordError):
        load_run_summary({"type": "trial-result"})
