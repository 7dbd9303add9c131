"""The keywords that compare a number of the run with a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderSpec, Metrics, PluginHost, TokenUsage, read_eval_spec
from vally.testing import ProjectBuilder, event, grade, trajectory
from vally_grader_metrics import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
THRESHOLDS = [name for name in RECORDS if name != "custom-metrics"]
HOST = PluginHost.from_objects(plugin)


def tokens(count: int) -> Metrics:
    return Metrics(token_usage=TokenUsage(input_tokens=count - 500, output_tokens=500, cache_read_tokens=9_000_000))


def calls(*names: str, turn_ids: tuple[str, ...] = ()) -> list[Event]:
    data: list[dict[str, str]] = [{"turn_id": turn_id} for turn_id in turn_ids] or [{}] * len(names)
    return [event("tool_call", tool_name=name, **more) for name, more in zip(names, data, strict=True)]


@pytest.mark.parametrize(
    ("keyword", "config", "facts", "score", "evidence", "metadata"),
    [
        pytest.param(
            "token-budget",
            {"max": 50000},
            {"metrics": tokens(1500)},
            1,
            "1500 tokens (within budget of 50000)",
            {"value": 1500, "max": 50000},
            id="MT-1",
        ),
        pytest.param(
            "token-budget",
            {"max": 50000},
            {"metrics": tokens(75000)},
            0.5,
            "75000 tokens exceeds max of 50000",
            {"value": 75000, "max": 50000},
            id="MT-2",
        ),
        pytest.param(
            "tool-call-count",
            {"max": 5},
            {"metrics": Metrics(tool_call_count=10)},
            0,
            "10 tool calls exceeds max of 5",
            {"value": 10, "max": 5},
            id="MT-3",
        ),
        pytest.param(
            "error-count",
            {"max": 0},
            {"metrics": Metrics(error_count=1)},
            0,
            "1 errors exceeds max of 0",
            {"value": 1, "max": 0},
            id="MT-4",
        ),
        pytest.param(
            "tool-call-count",
            {"max": 1, "tools": ["^web_"]},
            {"events": calls("web_search", "bash", "bash")},
            1,
            "1 tool calls (within budget of 1)",
            {"value": 1, "max": 1},
            id="MT-5",
        ),
        pytest.param(
            "wall-time",
            {"max": "2m"},
            {"metrics": Metrics(wall_time_ms=8300)},
            1,
            "8.3s wall time (within budget of 2m)",
            {"value": 8300, "max": 120000},
            id="MT-6",
        ),
        pytest.param(
            "step-count",
            {"max": 2},
            {"events": calls("a", "b", "c", turn_ids=("t1", "t1", "t2"))},
            1,
            "2 steps (within budget of 2)",
            {"value": 2, "max": 2},
            id="MT-7",
        ),
        pytest.param(
            "turn-count",
            {"max": 4},
            {"metrics": Metrics(turn_count=5)},
            0.75,
            "5 turns exceeds max of 4",
            {"value": 5, "max": 4},
            id="MT-8",
        ),
        pytest.param(
            "step-count",
            {"max": 0, "tools": ["a", "^c"]},
            {"events": calls("a", "b", "c", turn_ids=("t1", "t1", "t2"))},
            0,
            "2 steps exceeds max of 0",
            {"value": 2, "max": 0},
            id="steps with a matching call",
        ),
        pytest.param(
            "step-count",
            {"max": 1, "tools": "b"},
            {"events": calls("a", "b", "b", "c", turn_ids=("t1", "t1", "t1", "t2"))},
            1,
            "1 steps (within budget of 1)",
            {"value": 1, "max": 1},
            id="single pattern",
        ),
        pytest.param(
            "wall-time",
            {"max": "1.5s"},
            {"metrics": Metrics(wall_time_ms=1750)},
            1 - 250 / 1500,
            "1.8s wall time exceeds max of 1.5s",
            {"value": 1750, "max": 1500},
            id="time exceeded",
        ),
        pytest.param(
            "wall-time",
            {"max": "0s"},
            {"metrics": Metrics(wall_time_ms=850)},
            0,
            "850ms wall time exceeds max of 0s",
            {"value": 850, "max": 0},
            id="below one second",
        ),
        pytest.param(
            "token-budget",
            {"max": 0},
            {"metrics": tokens(0)},
            1,
            "0 tokens (within budget of 0)",
            {"value": 0, "max": 0},
            id="zero",
        ),
    ],
)
def test_table(
    keyword: str,
    config: dict[str, Any],
    facts: dict[str, Any],
    score: float,
    evidence: str,
    metadata: dict[str, int],
) -> None:
    events = facts.get("events", ())
    metrics = {"metrics": facts["metrics"]} if "metrics" in facts else {}
    result = grade(RECORDS[keyword], config, trajectory(*events, **metrics))
    assert (result.passed, result.status, result.evidence) == (score == 1, None, evidence)
    assert result.score == pytest.approx(score)
    assert result.metadata == metadata


@pytest.mark.parametrize("value", [60, "60", "-1s", "soon", None, True, ["1s"]])
def test_a_time_needs_a_unit(tmp_path: Path, value: object) -> None:
    """MT-9."""
    path = ProjectBuilder(tmp_path).eval("e", [{"graders": [{"type": "wall-time", "config": {"max": value}}]}])
    assert [(item.code, item.message) for item in read_eval_spec(path, host=HOST).diagnostics] == [
        ("invalid-grader-config", "Invalid config for wall-time: 'max' must be a duration with a unit")
    ]


@pytest.mark.parametrize(
    ("keyword", "noun", "unrecorded"),
    [
        ("token-budget", "tokens", Metrics(token_usage=None)),
        ("tool-call-count", "tool calls", Metrics(tool_call_count=None)),
        ("turn-count", "turns", Metrics(turn_count=None)),
        ("error-count", "errors", Metrics(error_count=None)),
        ("wall-time", "wall time", Metrics()),
    ],
)
def test_what_was_not_recorded_fails(keyword: str, noun: str, unrecorded: Metrics) -> None:
    longest: Any = "1m" if keyword == "wall-time" else 7
    result = grade(RECORDS[keyword], {"max": longest}, trajectory(metrics=unrecorded))
    assert (result.passed, result.score, result.status) == (False, 0, None)
    assert result.evidence == f"No {noun} recorded in trajectory"
    assert result.metadata == {"value": None, "max": 60_000 if keyword == "wall-time" else 7}


def test_turns_have_their_own_metrics() -> None:
    times = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:02.000Z", "2026-01-01T00:01:00.000Z"]
    recorded = trajectory(
        event("user_message", turn=0, content="1", timestamp=times[0]),
        event("token_usage", turn=0, input_tokens=10, output_tokens=1),
        event("turn_end", turn=0, turn_id="0", timestamp=times[1]),
        event("user_message", turn=1, content="2", timestamp=times[2]),
        event("token_usage", turn=1, input_tokens=5, output_tokens=2, agent_id="a"),
        stimulus={"turns": ["1", "2"]},
    )
    measured = {
        (keyword, turn, scope): grade(RECORDS[keyword], {"max": longest}, recorded, turn=turn, scope=scope).evidence
        for keyword, longest in (("token-budget", 9), ("turn-count", 1), ("wall-time", "5s"))
        for turn, scope in ((0, None), (1, None), (None, "main"))
    }
    assert measured == {
        ("token-budget", 0, None): "11 tokens exceeds max of 9",
        ("token-budget", 1, None): "7 tokens (within budget of 9)",
        ("token-budget", None, "main"): "11 tokens exceeds max of 9",
        ("turn-count", 0, None): "1 turns (within budget of 1)",
        ("turn-count", 1, None): "0 turns (within budget of 1)",
        ("turn-count", None, "main"): "1 turns (within budget of 1)",
        ("wall-time", 0, None): "2.0s wall time (within budget of 5s)",
        ("wall-time", 1, None): "No wall time recorded in trajectory",
        ("wall-time", None, "main"): "60.0s wall time exceeds max of 5s",
    }


@pytest.mark.parametrize("keyword", ["token-budget", "tool-call-count", "step-count", "turn-count", "error-count"])
def test_an_agent_that_did_nothing_stays_within_its_budget(keyword: str) -> None:
    assert grade(RECORDS[keyword], {"max": 0}, trajectory(*calls("a")), scope="nobody").passed


@pytest.mark.parametrize("keyword", ["tool-call-count", "step-count"])
def test_an_invalid_pattern_fails(keyword: str) -> None:
    result = grade(RECORDS[keyword], {"max": 1, "tools": ["a", "b("]}, trajectory(*calls("a")))
    assert (result.passed, result.status) == (False, None)
    assert result.evidence.startswith("Invalid regex pattern: b(. Error: ")


@pytest.mark.parametrize("keyword", THRESHOLDS)
def test_names_and_absence(keyword: str) -> None:
    longest: Any = "90s" if keyword == "wall-time" else 90
    record = RECORDS[keyword]
    grader, parsed = HOST.create(record), HOST.parse_config(record, {"max": longest})
    assert grader.default_name(parsed) == f"{keyword} {longest}"
    assert grader.asserts_absence(parsed) is True


@pytest.mark.parametrize("keyword", ["tool-call-count", "step-count"])
def test_names_with_tools(keyword: str) -> None:
    result = grade(RECORDS[keyword], {"max": 3, "tools": ["a", "b c"]}, trajectory())
    assert result.name == f"{keyword} 3 a, b c"


@pytest.mark.parametrize(
    ("keyword", "config", "problem"),
    [
        ("token-budget", {}, "'max' is required"),
        ("token-budget", {"max": -1}, "'max' must be at least 0"),
        ("token-budget", {"max": 1.5}, "'max' must be an integer"),
        ("token-budget", {"max": "5"}, "'max' must be an integer"),
        ("error-count", {"max": True}, "'max' must be an integer"),
        ("turn-count", {"max": 1, "tools": ["a"]}, "unknown key 'tools'"),
        ("wall-time", {}, "'max' is required"),
        ("wall-time", {"max": "1m", "tools": ["a"]}, "unknown key 'tools'"),
        ("step-count", {"max": 1, "tools": []}, "'tools' must not be empty"),
        ("tool-call-count", {"max": 1, "tools": ["a", " "]}, "'tools' must not hold a blank item"),
        ("tool-call-count", {"max": 1, "tools": 5}, "'tools' must be a list"),
    ],
)
def test_invalid_configs(keyword: str, config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(RECORDS[keyword], config)
    assert str(caught.value) == f"Invalid config for {keyword}: {problem}"


@pytest.mark.parametrize(
    ("written", "config", "warned"),
    [
        ("2m40s", "2m40s", []),
        ("120", "120s", ["bare-duration"]),
        ("'120'", "120s", ["bare-duration"]),
        ("0.5", "0.5s", ["bare-duration"]),
    ],
)
def test_max_duration_of_a_stimulus(tmp_path: Path, written: str, config: str, warned: list[str]) -> None:
    text = f"name: e\nstimuli:\n- name: s\n  prompt: p\n  constraints: {{max_duration: {written}}}\n"
    loaded = read_eval_spec(ProjectBuilder(tmp_path).file("eval.yaml", text), host=HOST)
    assert [item.code for item in loaded.diagnostics] == warned
    assert loaded.spec is not None
    (entry,) = loaded.spec.stimuli[0].graders
    assert (entry.type, entry.config, entry.constraint, entry.required) == (
        "wall-time",
        {"max": config},
        "max_duration",
        True,
    )
    longest = HOST.parse_config(RECORDS["wall-time"], entry.config)
    assert HOST.create(RECORDS["wall-time"]).default_name(longest) == f"wall-time {config}"


@pytest.mark.parametrize("written", ["-5", "soon", "true", "[1s]", "0s"])
def test_max_duration_that_is_none(tmp_path: Path, written: str) -> None:
    text = f"name: e\nstimuli:\n- name: s\n  prompt: p\n  constraints: {{max_duration: {written}}}\n"
    loaded = read_eval_spec(ProjectBuilder(tmp_path).file("eval.yaml", text), host=HOST)
    assert [item.code for item in loaded.diagnostics if item.level == "error"] == ["invalid-constraint-value"]
