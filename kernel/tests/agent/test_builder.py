"""What every trajectory has, whatever an executor tells the builder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vally import Event, ExecutorOptions, Skill, Stimulus, StopSignal, TrajectoryBuilder

MakeOptions = Callable[..., ExecutorOptions]


@pytest.fixture
def builder(stimulus: Stimulus, make_options: MakeOptions) -> TrajectoryBuilder:
    return TrajectoryBuilder(stimulus, make_options(), executor="mine")


def kinds(builder: TrajectoryBuilder) -> list[str]:
    return [event.type for event in builder.events]


def test_a_simple_trial(builder: TrajectoryBuilder, tmp_path: Path) -> None:
    builder.user_message("hi")
    builder.turn_start()
    builder.assistant_message("hello")
    builder.turn_end()
    trajectory = builder.finish("completed")
    assert (trajectory.id, trajectory.output, trajectory.end_reason) == ("trial-1", "hello", "completed")
    assert trajectory.work_dir == str(tmp_path / "work")
    assert trajectory.stimulus == {"name": "s", "prompt": "hi"}
    assert trajectory.metrics is not None
    assert (trajectory.metrics.turn_count, trajectory.metrics.error_count) == (1, 0)
    assert trajectory.metrics.wall_time_ms is not None
    assert all(event.timestamp and event.turn is None for event in trajectory.events)


def test_metadata_has_every_key(stimulus: Stimulus, skill: Skill, make_options: MakeOptions) -> None:
    other = replace(skill, name="a-first")
    options = make_options(model="m", reasoning_effort="high", skills=(skill, other))
    builder = TrajectoryBuilder(stimulus, options, executor="mine", version="1.2")
    builder.metadata["extra"] = 1
    metadata = builder.finish("completed").metadata
    assert metadata.pop("startedAt") <= metadata.pop("completedAt")
    assert metadata == {
        "model": "m",
        "executor": "mine",
        "executorVersion": "1.2",
        "reasoningEffort": "high",
        "sessionID": "trial-1",
        "skillsLoaded": ["a-first", "greeter"],
        "extra": 1,
    }


def test_without_a_model_the_record_says_default_model(builder: TrajectoryBuilder) -> None:
    assert builder.finish("completed").metadata["model"] == "default-model"


def test_every_event_has_its_turn_when_there_are_several(two_turns: Stimulus, make_options: MakeOptions) -> None:
    builder = TrajectoryBuilder(two_turns, make_options(), executor="mine")
    builder.system("compaction")
    for prompt in two_turns.turns:
        builder.user_message(prompt)
        builder.turn_start()
        builder.turn_end()
    events = builder.finish("completed").events
    assert [event.turn for event in events] == [0, 0, 0, 0, 1, 1, 1]
    assert [event.data["turnId"] for event in events if "turnId" in event.data] == ["0", "0", "0", "0"]
    assert builder.finish("completed").stimulus["prompt"] == "a\n\nb"


def test_a_simulated_second_prompt_numbers_the_first_too(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.assistant_message("hello")
    builder.user_message("more")
    assert [event.turn for event in builder.finish("completed").events] == [0, 0, 1]


def test_a_message_to_a_sub_agent_opens_no_turn(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.user_message("look", agent_id="x", agent_name="explorer")
    builder.assistant_message("seen", agent_id="x")
    trajectory = builder.finish("completed")
    assert builder.turn == 0
    assert (trajectory.events[1].agent_id, trajectory.events[1].agent_name) == ("x", "explorer")
    assert trajectory.output == ""


def test_agent_turns_are_numbered_per_agent(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.turn_start()
    builder.turn_start(agent_id="x")
    builder.turn_end(agent_id="x")
    builder.turn_end()
    builder.turn_start()
    builder.turn_end()
    assert [event.data.get("turnId") for event in builder.events][1:] == ["0", "0", "0", "0", "1", "1"]


def test_an_agent_turn_that_is_open_stays_open(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.turn_start()
    assert [event.type for event in builder.finish("agent_timeout").events] == ["user_message", "turn_start"]


def test_calls_are_joined_with_their_results(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.turn_start()
    first = builder.tool_call("bash", call_id="c", arguments={"command": "ls"}, mcp_server="m", read_only=True)
    second = builder.tool_call("view", call_id="d")
    builder.tool_result("d", success=False, result="no such file", error_code="ENOENT")
    done = builder.tool_result("c", success=True, result="a", exit_code=3)
    assert first.data == {
        "toolName": "bash",
        "toolCallId": "c",
        "arguments": {"command": "ls"},
        "turnId": "0",
        "readOnly": True,
        "mcpServer": "m",
    }
    assert second.data["toolCallId"] == "d"
    assert done.data == {"toolName": "bash", "toolCallId": "c", "success": True, "result": "a", "exitCode": 3}
    assert builder.events[-2].data["result"] == "no such file"


def test_call_ids_are_unique_in_the_trajectory(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    for text in ("one", "two"):
        builder.tool_call("bash", call_id="0")
        builder.tool_result("0", success=True, result=text)
    nameless = builder.tool_call("bash")
    builder.tool_result(nameless.data["toolCallId"], success=True, result="three")
    calls = [event.data["toolCallId"] for event in builder.events if event.type == "tool_call"]
    results = [event.data["toolCallId"] for event in builder.events if event.type == "tool_result"]
    assert calls == results
    assert len(set(calls)) == 3


def test_a_result_without_a_call_gets_one(builder: TrajectoryBuilder) -> None:
    builder.user_message("hi")
    builder.tool_result("lost", success=True, tool="bash", result="x")
    assert kinds(builder) == ["user_message", "tool_call", "tool_result"]
    assert builder.events[1].data == {"toolName": "bash", "toolCallId": "lost"}
    builder.tool_result("lost", success=True, tool="bash", result="y")
    ids = [event.data["toolCallId"] for event in builder.events[1:]]
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_token_usage_counts(builder: TrajectoryBuilder) -> None:
    cost = {"provider": "p", "unit": "usd", "amount": 0.5}
    builder.token_usage(10, 2, model="m", cache_read_tokens=4, cost=cost)
    builder.token_usage(1, 1)
    trajectory = builder.finish("completed")
    assert trajectory.events[0].data == {
        "inputTokens": 10,
        "outputTokens": 2,
        "model": "m",
        "cacheReadTokens": 4,
        "cost": cost,
    }
    assert trajectory.metrics is not None
    assert trajectory.metrics.token_usage is not None
    assert trajectory.metrics.token_usage.total_tokens == 14


def test_events_without_a_method_of_their_own(builder: TrajectoryBuilder) -> None:
    builder.error("bad", type="query", code=500, url="http://x")
    builder.system("truncation", {"removed": 3})
    builder.custom("stdout", {"line": "x"})
    builder.reasoning("hm")
    builder.skill_activation("s", path="p", trigger="agent")
    assert [event.data for event in builder.events] == [
        {"message": "bad", "type": "query", "code": 500, "url": "http://x"},
        {"eventType": "truncation", "removed": 3},
        {"eventType": "stdout", "line": "x"},
        {"content": "hm"},
        {"name": "s", "path": "p", "trigger": "agent"},
    ]


def test_recorded_events_follow_the_same_rules(two_turns: Stimulus, make_options: MakeOptions) -> None:
    builder = TrajectoryBuilder(two_turns, make_options(), executor="mine")
    builder.user_message("a")
    call = Event(type="tool_call", data={"toolName": "bash", "toolCallId": "c"})
    for _ in range(2):
        builder.record(call)
        builder.record(
            Event(type="tool_result", data={"toolCallId": "c", "success": True}, timestamp="2026-01-01T00:00:00Z")
        )
    assert call.data == {"toolName": "bash", "toolCallId": "c"}
    assert [event.data["toolCallId"] for event in builder.events[1:]] == ["c", "c", "c#2", "c#2"]
    assert [event.data["toolName"] for event in builder.events[1:]] == ["bash"] * 4
    assert builder.events[2].timestamp == "2026-01-01T00:00:00Z"
    assert {event.turn for event in builder.events} == {0}


def test_replayed_events_keep_their_ids(two_turns: Stimulus, make_options: MakeOptions) -> None:
    builder = TrajectoryBuilder(two_turns, make_options(), executor="mine")
    events = [
        Event(type=type_, data=data)
        for prompt in two_turns.turns
        for type_, data in (
            ("user_message", {"content": prompt}),
            ("tool_result", {"toolCallId": "c", "success": True}),
        )
    ]
    for event in events:
        builder.replay(event)
    recorded = builder.finish("completed").events
    assert [event.data for event in recorded] == [event.data for event in events]
    assert [event.turn for event in recorded] == [0, 0, 1, 1]


def test_events_are_shown_as_they_come(stimulus: Stimulus, make_options: MakeOptions) -> None:
    seen: list[Event] = []
    builder = TrajectoryBuilder(stimulus, make_options(on_event=seen.append), executor="mine")
    builder.user_message("hi", attachments=["a.png"])
    assert [event.data for event in seen] == [{"content": "hi", "attachments": ["a.png"]}]


@pytest.mark.parametrize(
    ("reason", "end"), [("timeout", "agent_timeout"), ("cancelled", "cancelled"), (None, "agent_timeout")]
)
def test_a_stop_gives_its_end_reason(
    stimulus: Stimulus, make_options: MakeOptions, reason: str | None, end: str
) -> None:
    stop = StopSignal()
    if reason:
        stop.set(reason)
    builder = TrajectoryBuilder(stimulus, make_options(stop=stop), executor="mine")
    assert builder.finish_stopped().end_reason == end


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("view", {"path": "{skill}"}, True),
        ("view", {"path": "skills/greeter/SKILL.md"}, True),
        ("bash", {"command": "cd /x && cat '{skill}' | head"}, True),
        ("bash", {"command": "cat ./skills/../skills/greeter/SKILL.md"}, True),
        ("batch", {"calls": [{"file": "{skill}"}]}, True),
        ("skill", {"skill": "greeter"}, True),
        ("Skill", {"command": "greeter"}, True),
        ("activate_skill", {"name": "greeter"}, True),
        ("skill", {"skill": "unknown"}, False),
        ("reskill", {"skill": "greeter"}, False),
        ("bash", {"command": "echo greeter"}, False),
        ("view", {"path": "other/SKILL.md"}, False),
        ("view", {"path": "skills/greeter/SKILL.md\0"}, False),
        ("view", None, False),
    ],
)
def test_skills_read_as_files_are_found(
    stimulus: Stimulus,
    skill: Skill,
    make_options: MakeOptions,
    tool: str,
    arguments: dict[str, object] | None,
    found: bool,
) -> None:
    builder = TrajectoryBuilder(stimulus, make_options(skills=(skill,)), executor="mine")
    builder.user_message("hi")
    filled = _filled(arguments, str(skill.path))
    for _ in range(2):
        builder.tool_call(tool, call_id="c", arguments=filled)
        builder.tool_result("c", success=True, result="text")
    activations = [event.data for event in builder.events if event.type == "skill_activation"]
    expected = {"name": "greeter", "path": str(skill.path), "trigger": "file-read"}
    assert activations == ([expected] if found else [])
    if found:
        assert kinds(builder)[:4] == ["user_message", "tool_call", "tool_result", "skill_activation"]


def _filled(value: object, skill: str) -> object:
    if isinstance(value, str):
        return value.replace("{skill}", skill)
    if isinstance(value, dict):
        return {key: _filled(item, skill) for key, item in value.items()}
    return [_filled(item, skill) for item in value] if isinstance(value, list) else value


def test_a_failed_read_takes_up_nothing(stimulus: Stimulus, skill: Skill, make_options: MakeOptions) -> None:
    builder = TrajectoryBuilder(stimulus, make_options(skills=(skill,)), executor="mine")
    builder.tool_call("view", call_id="c", arguments={"path": str(skill.path)})
    builder.tool_result("c", success=False, result="denied")
    assert "skill_activation" not in kinds(builder)


def test_a_skill_counts_once_in_each_conversation_turn(
    two_turns: Stimulus, skill: Skill, make_options: MakeOptions
) -> None:
    builder = TrajectoryBuilder(two_turns, make_options(skills=(skill,)), executor="mine")
    for prompt in two_turns.turns:
        builder.user_message(prompt)
        for _ in range(2):
            builder.tool_call("skill", call_id="c", arguments={"skill": "greeter"})
            builder.tool_result("c", success=True)
    assert [event.turn for event in builder.events if event.type == "skill_activation"] == [0, 1]


def test_an_agent_that_tells_its_skills_is_believed(
    stimulus: Stimulus, skill: Skill, make_options: MakeOptions
) -> None:
    builder = TrajectoryBuilder(stimulus, make_options(skills=(skill,)), executor="mine", skill_events=True)
    builder.tool_call("skill", call_id="c", arguments={"skill": "greeter"})
    builder.tool_result("c", success=True)
    assert "skill_activation" not in kinds(builder)
