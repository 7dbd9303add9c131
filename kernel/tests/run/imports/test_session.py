"""Import of session logs of the Copilot CLI."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from vally import Imported, VallyError, import_session

START = {"sessionId": "s-1", "selectedModel": "gpt-x", "copilotVersion": "1.0.102", "context": {"cwd": "/w"}}
NUMBERS = count(1)


def line(kind: str, /, _agent: str | None = None, **data: Any) -> dict[str, Any]:
    number = next(NUMBERS)
    agent = {} if _agent is None else {"agentId": _agent}
    moment = f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    return {"type": kind, "id": f"e{number}", "timestamp": moment, "data": data, **agent}


def start() -> dict[str, Any]:
    return line("session.start", **START)


def user(text: str = "hi", **data: Any) -> dict[str, Any]:
    return line("user.message", content=text, **data)


def turn(number: int | str, *inside: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        line("assistant.turn_start", turnId=str(number)),
        *inside,
        line("assistant.turn_end", turnId=str(number)),
    ]


def says(text: str, **data: Any) -> dict[str, Any]:
    return line("assistant.message", content=text, **data)


def tool(name: str = "bash", call: str = "c1", ok: bool = True, **arguments: Any) -> list[dict[str, Any]]:
    outcome = {"result": {"content": "out"}} if ok else {"error": {"message": "denied", "code": "denied"}}
    return [
        line("tool.execution_start", toolName=name, toolCallId=call, arguments=arguments),
        line("tool.execution_complete", toolCallId=call, success=ok, **outcome),
    ]


def written(tmp_path: Path, *lines: dict[str, Any], tail: str = "") -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in lines) + tail, encoding="utf-8")
    return path


def imported(tmp_path: Path, *lines: dict[str, Any], prompts: tuple[str, ...] = (), tail: str = "") -> Imported:
    return import_session(written(tmp_path, *lines, tail=tail), prompts=prompts)


def types(result: Imported) -> list[str]:
    return [event.type for event in result.trajectory.events]


def test_cs_1(tmp_path: Path) -> None:
    lines = [start(), user(), *turn(0, *tool()), *turn(1, says("fin")), line("session.shutdown")]
    trajectory = imported(tmp_path, *lines).trajectory
    assert trajectory.metrics is not None
    assert (trajectory.metrics.turn_count, trajectory.metrics.tool_call_count) == (2, 1)
    assert (trajectory.output, trajectory.end_reason, trajectory.work_dir) == ("fin", "completed", "/w")
    assert trajectory.metadata["executor"] == "copilot-cli"
    assert trajectory.metadata["executorVersion"] == "1.0.102"
    (call,) = (event for event in trajectory.events if event.type == "tool_call")
    assert call.data["turnId"] == "0"
    assert trajectory.metrics.wall_time_ms == 7000


def test_cs_2_turn_ids_restart(tmp_path: Path) -> None:
    halves = [[user(text), *turn(0, *tool(call=text)), *turn(1, says(text))] for text in ("one", "two")]
    result = imported(tmp_path, start(), *halves[0], *halves[1], prompts=("one", "two"))
    events = [event for event in result.trajectory.events if event.type == "turn_start"]
    assert len({(event.turn, event.data["turnId"]) for event in events}) == 4


def test_cs_3_an_open_turn(tmp_path: Path) -> None:
    result = imported(tmp_path, user(), line("assistant.turn_start", turnId="0"))
    assert result.trajectory.end_reason == "unknown"


@pytest.mark.parametrize("with_event", [True, False])
def test_cs_4_one_activation_for_a_skill(tmp_path: Path, with_event: bool) -> None:
    invoked = [line("skill.invoked", name="greeter", path="/s", trigger="agent-invoked")] if with_event else []
    result = imported(tmp_path, user(), *turn(0, *tool("skill", skill="greeter"), *invoked, says("x")))
    names = [event.data["name"] for event in result.trajectory.events if event.type == "skill_activation"]
    assert names == ["greeter"]
    if not with_event:
        kinds = types(result)
        assert kinds.index("skill_activation") == kinds.index("tool_call") - 1


def test_a_skill_that_could_not_be_loaded_is_no_activation(tmp_path: Path) -> None:
    result = imported(tmp_path, user(), *turn(0, *tool("skill", ok=False, skill="nope")))
    assert "skill_activation" not in types(result)


def test_cs_5_injected_messages_open_no_turn(tmp_path: Path) -> None:
    lines = [user("one"), *turn(0, says("a")), user("body", source="skill"), user("two"), *turn(0, says("b"))]
    result = imported(tmp_path, *lines, prompts=("one", "two"))
    assert types(result).count("user_message") == 2
    assert {event.turn for event in result.trajectory.events} == {0, 1}
    (custom,) = (event for event in result.trajectory.events if event.type == "custom")
    assert custom.data["eventType"] == "user.message"


def usage(call: str | None, tokens: int) -> dict[str, Any]:
    figures = {"inputTokens": tokens, "outputTokens": 1, "model": "m", "copilotUsage": {"totalNanoAiu": 5}}
    return line("session.usage_record", usage=figures | ({"apiCallId": call} if call else {}))


SUMS = {"modelMetrics": {"m": {"usage": {"inputTokens": 60, "outputTokens": 3}}}}


def test_cs_6_usage_counts_once(tmp_path: Path) -> None:
    lines = [usage("a", 10), usage("b", 20), usage(None, 30), usage("a", 10), line("session.shutdown", **SUMS)]
    result = imported(tmp_path, user(), *turn(0, says("x")), *lines)
    assert result.trajectory.metrics is not None
    found = result.trajectory.metrics.token_usage
    assert found is not None
    assert (found.call_count, found.input_tokens) == (3, 60)
    assert found.cost is not None
    assert (found.cost.unit, found.cost.amount) == ("nano-aiu", 15)


def test_without_usage_lines_the_sums_of_the_shutdown_count(tmp_path: Path) -> None:
    result = imported(tmp_path, user(), *turn(0, says("x", outputTokens=9)), line("session.shutdown", **SUMS))
    assert result.trajectory.metrics is not None
    found = result.trajectory.metrics.token_usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens, list(found.by_model)) == (60, 3, ["m"])


def test_without_any_usage_the_messages_are_summed(tmp_path: Path) -> None:
    result = imported(tmp_path, user(), *turn(0, says("x", outputTokens=9)))
    assert result.trajectory.metrics is not None
    found = result.trajectory.metrics.token_usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (0, 9)
    assert len(result.warnings) == 1


def test_cs_7_sub_agents(tmp_path: Path) -> None:
    lines = [
        user(),
        line("assistant.turn_start", turnId="0"),
        line("subagent.started", _agent="x", agentName="helper", toolCallId="c1"),
        line("assistant.turn_start", _agent="x", turnId="0"),
        line("assistant.message", _agent="x", content="from the child"),
        line("assistant.turn_end", _agent="x", turnId="0"),
        line("assistant.message", content="main"),
        line("assistant.turn_end", turnId="0"),
        line("assistant.message", content="old style", parentToolCallId="c1"),
    ]
    trajectory = imported(tmp_path, *lines).trajectory
    child = [event for event in trajectory.events if event.agent_id == "x"]
    assert [event.agent_name for event in child] == ["helper"] * 4
    assert (trajectory.events[-1].agent_id, trajectory.events[-1].agent_name) == ("c1", "helper")
    assert trajectory.output == "main"
    assert trajectory.end_reason == "completed"


def test_cs_8_a_torn_line(tmp_path: Path) -> None:
    result = imported(tmp_path, user(), *turn(0, says("x")), tail='{"type": "assis')
    assert result.trajectory.output == "x"
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("line 5 is skipped: ")


def test_a_session_without_a_prompt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VallyError, match="session has no user message"):
        imported(tmp_path, start(), user("x", source="skill"))


def test_a_session_directory_is_read_too(tmp_path: Path) -> None:
    written(tmp_path, user(), *turn(0, says("x")))
    assert import_session(tmp_path).trajectory.output == "x"


def test_repeated_and_ephemeral_lines_do_not_count(tmp_path: Path) -> None:
    message = says("x")
    fleeting = {**says("gone"), "ephemeral": True}
    result = imported(tmp_path, user(), message, message, fleeting)
    assert types(result) == ["user_message", "assistant_message"]


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("assistant.reasoning", {"content": "hm"}, ("reasoning", None)),
        ("session.error", {"message": "m", "errorType": "t", "statusCode": 500}, ("error", None)),
        ("session.compaction_start", {}, ("system", "compaction_start")),
        ("session.compaction_complete", {"success": True, "summaryContent": "s"}, ("system", "compaction")),
        ("session.compaction_complete", {"success": False}, ("system", "compaction_failed")),
        ("session.truncation", {"n": 1}, ("system", "truncation")),
        ("session.snapshot_rewind", {}, ("system", "snapshot_rewind")),
        ("session.context_cleared", {}, ("system", "context_cleared")),
        ("skill.invoked", {"name": "n", "trigger": "context-load"}, ("custom", "skill.invoked")),
        ("user.message", {"content": "go on", "isAutopilotContinuation": True}, ("custom", "user.message")),
        ("abort", {"reason": "user"}, ("custom", "abort")),
        ("subagent.completed", {"agentName": "x"}, ("custom", "subagent.completed")),
        ("session.model_change", {"newModel": "y"}, ("custom", "session.model_change")),
        ("model.call_failure", {"error": "x"}, ("custom", "model.call_failure")),
        ("external_tool.requested", {}, ("custom", "external_tool.requested")),
        ("session.skills_loaded", {"skills": []}, ("custom", "session.skills_loaded")),
        ("never.heard_of", {"deep": {"kept": [1]}}, ("custom", "never.heard_of")),
        ("system.message", {"content": "x"}, None),
        ("permission.requested", {}, None),
        ("hook.start", {}, None),
        ("pending_messages.modified", {}, None),
        ("assistant.message_delta", {}, None),
        ("tool.execution_partial_result", {}, None),
        ("tool.partial_result", {}, None),
        ("tool.execution_progress", {}, None),
        ("session.title_changed", {}, None),
        ("session.usage_info", {}, None),
        ("session.usage_checkpoint", {}, None),
        ("session.binary_asset", {}, None),
        ("skill.context_delivered", {}, None),
        ("skill.context_delivered_again", {}, None),
    ],
)
def test_every_kind_of_event(tmp_path: Path, kind: str, data: dict[str, Any], expected: Any) -> None:
    events = imported(tmp_path, user(), line(kind, **data)).trajectory.events[1:]
    assert [(event.type, event.data.get("eventType")) for event in events] == ([expected] if expected else [])
    assert not any("summaryContent" in event.data for event in events)
    if kind == "never.heard_of":
        assert events[0].data["deep"] == {"kept": [1]}


def test_messages_in_parts_are_joined(tmp_path: Path) -> None:
    parts = [says("lo", messageId="m", chunkIndex=1), says("hel", messageId="m", chunkIndex=0)]
    result = imported(tmp_path, user(), *turn(0, *parts, says("  "), says("!", messageId="n")))
    texts = [event.data["content"] for event in result.trajectory.events if event.type == "assistant_message"]
    assert texts == ["hello", "!"]


def test_a_thought_is_told_once_per_turn(tmp_path: Path) -> None:
    inside = [line("assistant.reasoning", content="hm"), says("x", reasoningText="hm")]
    result = imported(tmp_path, user(), *turn(0, *inside), *turn(1, says("y", reasoningText="so")))
    thoughts = [event.data["content"] for event in result.trajectory.events if event.type == "reasoning"]
    assert thoughts == ["hm", "so"]


def test_failed_calls_keep_their_error(tmp_path: Path) -> None:
    shell = line(
        "tool.execution_complete",
        toolCallId="c2",
        success=True,
        result={"content": "", "contents": [{"type": "shell_exit", "exitCode": 2}]},
    )
    result = imported(tmp_path, user(), *turn(0, *tool(ok=False), shell))
    failed, exited = (event.data for event in result.trajectory.events if event.type == "tool_result")
    assert (failed["success"], failed["result"], failed["errorCode"]) == (False, "denied", "denied")
    assert (exited["success"], exited["exitCode"]) == (True, 2)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([line("abort")], "cancelled"),
        ([line("abort"), user("again"), *turn(1, says("x"))], "completed"),
        ([line("session.error", message="m")], "error"),
        ([line("session.error", message="m"), says("recovered")], "completed"),
        ([line("session.shutdown", shutdownType="error")], "error"),
        ([line("session.shutdown", shutdownType="routine")], "completed"),
    ],
)
def test_end_reasons(tmp_path: Path, lines: list[dict[str, Any]], reason: str) -> None:
    assert imported(tmp_path, user(), *turn(0, says("x")), *lines).trajectory.end_reason == reason


def test_skills_that_were_offered(tmp_path: Path) -> None:
    skills = [{"name": "b"}, {"name": "a", "enabled": True}, {"name": "off", "enabled": False}]
    result = imported(tmp_path, user(), line("session.skills_loaded", skills=skills))
    assert result.trajectory.metadata["skillsLoaded"] == ["a", "b"]


@pytest.mark.parametrize("data", [None, [], "x", {"content": 5, "toolCallId": 7, "messageId": [], "usage": 3}])
@pytest.mark.parametrize(
    "kind",
    [
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "session.usage_record",
        "skill.invoked",
        "session.error",
        "session.start",
        "assistant.turn_end",
        "session.shutdown",
        "subagent.started",
    ],
)
def test_events_of_a_strange_shape_end_nothing(tmp_path: Path, kind: str, data: Any) -> None:
    assert imported(tmp_path, user(), {**line(kind), "data": data}).trajectory.events[0].type == "user_message"
