"""Writing, reading and writing a record again gives the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from vally.model.jsonio import parse_json, record_line
from vally.model.results import (
    Cost,
    ErrorInfo,
    EvalSummary,
    GraderResult,
    JudgeUsage,
    Phases,
    RunSummary,
    Totals,
    TrialResult,
    load_run_summary,
    load_trial_result,
    ordered_record,
)
from vally.model.trajectory import Event, Metrics, RecordModel, TokenUsage, Trajectory, TurnDiff

text = st.text(st.characters(exclude_categories=()), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
unknown_keys = st.dictionaries(text.map(lambda key: f"x-{key}"), json_values, max_size=2)
optional_text = st.none() | text
counts = st.integers(0, 2**60)
objects = st.dictionaries(text, json_values, max_size=3)

events = st.builds(
    lambda extra, **fields: Event(**fields, **extra),
    unknown_keys,
    type=text,
    timestamp=st.none() | st.just("2026-01-01T00:00:00.000Z"),
    turn=st.none() | st.integers(0, 3),
    agent_id=optional_text,
    data=objects,
)
metrics = st.builds(
    Metrics, token_usage=st.builds(TokenUsage, input_tokens=counts), turn_count=counts, wall_time_ms=st.none() | counts
)
trajectories = st.builds(
    lambda extra, **fields: Trajectory(**fields, **extra),
    unknown_keys,
    id=text,
    stimulus=objects,
    events=st.lists(events, max_size=3),
    metrics=metrics,
    output=text,
    metadata=objects,
    end_reason=optional_text,
    diff=optional_text,
    turn_diffs=st.none() | st.lists(st.builds(TurnDiff, turn=st.integers(0, 2), diff=optional_text), max_size=2),
)
grades = st.builds(
    lambda extra, **fields: GraderResult(**fields, **extra),
    unknown_keys,
    name=text.filter(bool),
    passed=st.booleans(),
    score=st.floats(0, 1),
    evidence=text,
    metadata=st.none() | objects,
    details=st.lists(st.builds(GraderResult, name=text.filter(bool), passed=st.booleans(), score=st.floats(0, 1))),
)
trials = st.builds(
    lambda extra, **fields: TrialResult(**fields, **extra),
    unknown_keys,
    run_id=text,
    item_id=text.filter(bool),
    eval_name=text,
    eval_file_path=text,
    stimulus=text.filter(bool),
    trial_index=counts,
    total_trials=counts,
    status=st.sampled_from(["success", "error", "skipped"]),
    duration_ms=counts,
    phases=st.none() | st.builds(Phases, agent_ms=counts),
    trajectory=st.none() | trajectories,
    grade_result=st.none() | grades,
    error=optional_text,
    error_info=st.none() | st.builds(ErrorInfo, message=text, code=text, details=st.none() | objects),
    warnings=st.none() | st.lists(text, max_size=2),
    tags=st.none() | objects,
    judge_usage=st.none()
    | st.builds(JudgeUsage, cost=st.builds(Cost, provider=text, unit=text, amount=st.floats(0, 1e20))),
    regraded=st.none() | st.just(True),
)


@settings(max_examples=40, deadline=None)
@given(trials)
def test_trial_results(result: TrialResult) -> None:
    first = record_line(result)
    assert record_line(load_trial_result(parse_json(first))) == first
    assert record_line(parse_json(first)) == first
    _check_strict(first)


@settings(max_examples=30, deadline=None)
@given(unknown_keys, st.lists(st.builds(EvalSummary, name=text, eval_file_path=text, passed=st.booleans())))
@example({"x-": 2.0**53}, [])
@example({"x-": -9.9e15}, [])
@example({"x-": 1e16}, [])
def test_run_summaries(extra: dict[str, Any], evals: list[EvalSummary]) -> None:
    summary = RunSummary(run_id="r", passed=True, started_at="s", completed_at="c", evals=evals, **extra)
    first = record_line(summary)
    assert record_line(load_run_summary(parse_json(first))) == first
    _check_strict(first)


def _check_strict(line: bytes) -> None:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    json.loads(line.decode("utf-8", "strict"), parse_constant=pytest.fail)


def test_integral_numbers_have_no_fraction() -> None:
    line = record_line(GraderResult(name="n", passed=True, score=1.0, metadata={"weights": {"a": 2.0}, "z": -0.0}))
    assert b'"score":1,' in line
    assert b'{"weights":{"a":2},"z":0}' in line


def test_counts_saturate_and_other_integers_do_not() -> None:
    event = Event(type="tool_call", data={"arguments": {"n": 2**70}})
    trajectory = Trajectory(metrics=Metrics(turn_count=2**70), events=[event])
    record = json.loads(record_line(trajectory))
    assert record["metrics"]["turnCount"] == 2**53 - 1
    assert record["events"][0]["data"]["arguments"]["n"] == 2**70


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (Trajectory(), "id stimulus events output workDir metadata"),
        (
            Trajectory(metrics=Metrics(), end_reason="completed", workspace_patch="secret", redactions=2),
            "id stimulus events metrics output workDir metadata endReason redactions",
        ),
        (Event(type="a", turn=0), "type turn data"),
        (
            TrialResult(
                run_id="r",
                item_id="i",
                eval_name="e",
                eval_file_path="p",
                stimulus="s",
                trial_index=0,
                total_trials=1,
                status="skipped",
                skip_reason="cancelled",
            ),
            "type runId itemId evalName evalFilePath variant model stimulus trialIndex totalTrials status durationMs "
            "workspacePath trajectory gradeResult skipReason",
        ),
        (
            GraderResult(name="n", passed=True, score=1),
            "name kind passed score evidence",
        ),
        (
            RunSummary(run_id="r", passed=True, started_at="a", completed_at="b"),
            "type runId status passed hadExecutionErrors partial stopReason startedAt completedAt durationMs totals "
            "evals",
        ),
        (
            Totals(),
            "trials passed failed errors skipped flakyStimuli totalTokens cost",
        ),
        (
            EvalSummary(name="n", eval_file_path="p", passed=True),
            "name evalFilePath variant model passed scoringApplied stimuliRun stimuliTotal durationMs reason",
        ),
    ],
)
def test_keys_and_their_order(model: BaseModel, keys: str) -> None:
    assert " ".join(json.loads(record_line(model))) == keys


def test_key_order_of_a_mapping_is_that_of_its_table() -> None:
    record = {"b": 1, "status": "ok", "a": 2, "type": "trial-result"}
    assert list(ordered_record(TrialResult, record)) == ["type", "status", "b", "a"]


def test_keys_with_surrogates_are_repaired() -> None:
    model = RecordModel.model_validate({"x\ud800": 1})
    assert json.loads(record_line(model)) == {"x\ufffd": 1}
    event = Event(type="custom", data={"\ud83d\ude00": {"\ud800": 1}})
    assert json.loads(record_line(event))["data"] == {"\U0001f600": {"\ufffd": 1}}
