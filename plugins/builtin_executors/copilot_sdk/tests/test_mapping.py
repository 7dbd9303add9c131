"""Events of the runtime as events of the trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import Event, TrajectoryBuilder
from vally.testing import executor_options, stimulus
from vally_executor_copilot_sdk.mapping import EventMapper
from vally_executor_copilot_sdk.native import Native, prompt_event

WHEN = "2026-01-02T03:04:05.678Z"


def native(kind: str, agent: str | None = None, *, ephemeral: bool = False, **data: Any) -> Native:
    envelope = {"agentId": agent} if agent else {}
    return {"id": f"{kind}-{data}", "type": kind, "timestamp": WHEN, "ephemeral": ephemeral, "data": data, **envelope}


def prompt(text: str = "do it") -> list[Native]:
    return [prompt_event(text, []), native("user.message", content=text)]


@pytest.fixture
def builder(tmp_path: Path) -> TrajectoryBuilder:
    return TrajectoryBuilder(stimulus("do it", "again"), executor_options(tmp_path), executor="copilot-sdk")


@pytest.fixture
def mapped(builder: TrajectoryBuilder) -> Any:
    def feed(*events: Native) -> list[Event]:
        mapper = EventMapper(builder)
        for event in events:
            mapper.feed(event)
        return list(builder.events)

    return feed


def shown(events: list[Event]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(event.type, event.data) for event in events]


def call(tool: str, number: int = 0, agent: str | None = None, **arguments: Any) -> list[Native]:
    call_id = f"call-{number}"
    return [
        native("tool.execution_start", agent, toolCallId=call_id, toolName=tool, arguments=arguments),
        native("tool.execution_complete", agent, toolCallId=call_id, success=True, result={"content": f"out {number}"}),
    ]


def turn(number: str, *events: Native, agent: str | None = None) -> list[Native]:
    start, end = (native(f"assistant.turn_{part}", agent, turnId=number) for part in ("start", "end"))
    return [start, *events, end]


def test_cs_1_a_plain_session(mapped: Any, builder: TrajectoryBuilder) -> None:
    answer = native("assistant.message", content="fin", messageId="m", model="gpt")
    events = mapped(*prompt(), *turn("0", *call("bash", command="ls")), *turn("1", answer))
    assert [event.type for event in events] == [
        "user_message",
        "turn_start",
        "tool_call",
        "tool_result",
        "turn_end",
        "turn_start",
        "assistant_message",
        "turn_end",
    ]
    assert events[2].data == {"toolName": "bash", "toolCallId": "call-0", "arguments": {"command": "ls"}, "turnId": "0"}
    assert events[3].data == {"toolName": "bash", "toolCallId": "call-0", "success": True, "result": "out 0"}
    assert events[6].data == {"content": "fin", "messageId": "m", "model": "gpt"}
    assert events[6].timestamp == WHEN
    assert builder.finish("completed").output == "fin"


def test_cs_2_agent_turns_restart_with_each_prompt(mapped: Any) -> None:
    events = mapped(*prompt("do it"), *turn("0"), *turn("1"), *prompt("again"), *turn("0"), *turn("1"))
    turns = {(event.turn, event.data["turnId"]) for event in events if event.type == "turn_start"}
    assert turns == {(0, "0"), (0, "1"), (1, "0"), (1, "1")}


def test_cs_4_a_skill_is_activated_once(mapped: Any) -> None:
    invoked = native(
        "skill.invoked",
        name="greet",
        path="/s/SKILL.md",
        content="body",
        trigger="agent-invoked",
        allowedTools=["bash"],
        pluginName=None,
    )
    events = mapped(*prompt(), *call("skill", skill="greet"), invoked)
    activations = [event.data for event in events if event.type == "skill_activation"]
    assert activations == [
        {
            "name": "greet",
            "path": "/s/SKILL.md",
            "content": "body",
            "trigger": "agent-invoked",
            "allowedTools": ["bash"],
        }
    ]


def test_skills_of_the_context_are_no_activation(mapped: Any) -> None:
    events = mapped(*prompt(), native("skill.invoked", name="s", path="p", content="c", trigger="context-load"))
    assert events[-1].type == "custom"
    assert events[-1].data["eventType"] == "skill.invoked"


@pytest.mark.parametrize("extra", [{"source": "skill"}, {"isAutopilotContinuation": True}, {}], ids=str)
def test_cs_5_messages_that_nobody_sent_are_custom(mapped: Any, extra: dict[str, Any]) -> None:
    message = native("user.message", content="injected", transformedContent="long", **extra)
    events = mapped(*prompt("do it"), message, *prompt("again"))
    assert [event.type for event in events] == ["user_message", "custom", "user_message"]
    assert [event.turn for event in events] == [0, 0, 1]
    assert "transformedContent" not in events[1].data


def test_cs_6_usage_counts_once(mapped: Any, builder: TrajectoryBuilder) -> None:
    live = [
        native("assistant.usage", apiCallId=f"a{n}", model="m", inputTokens=10, outputTokens=n, ephemeral=True)
        for n in range(3)
    ]
    kept = [
        native("session.usage_record", usage={"apiCallId": f"a{n}", "inputTokens": 10, "outputTokens": n})
        for n in range(3)
    ]
    mapped(*prompt(), *live, *kept, native("session.shutdown", modelMetrics={"m": {}}))
    metrics = builder.finish("completed").metrics
    assert metrics is not None
    assert (metrics.token_usage.call_count, metrics.token_usage.input_tokens, metrics.token_usage.output_tokens) == (
        3,
        30,
        3,
    )


def test_cost_and_cached_tokens(mapped: Any) -> None:
    usage = native(
        "assistant.usage",
        ephemeral=True,
        model="m",
        inputTokens=100,
        outputTokens=5,
        cacheReadTokens=40,
        cacheWriteTokens=1,
        reasoningTokens=2,
        copilotUsage={"totalNanoAiu": 7},
    )
    events = mapped(*prompt(), usage)
    assert events[-1].data == {
        "inputTokens": 100,
        "outputTokens": 5,
        "model": "m",
        "cacheReadTokens": 40,
        "cacheWriteTokens": 1,
        "reasoningTokens": 2,
        "cost": {"provider": "github-copilot", "unit": "nano-aiu", "amount": 7},
    }


def test_cs_7_events_of_sub_agents(mapped: Any, builder: TrajectoryBuilder) -> None:
    started = native("subagent.started", "x", agentName="helper", toolCallId="call-9", agentDisplayName="Helper")
    inner = [
        native("user.message", "x", content="inner", source="agent-1"),
        *turn("0", *call("bash", agent="x"), agent="x"),
    ]
    answer = native("assistant.message", "x", content="inner answer", messageId="m")
    events = mapped(*prompt(), started, *inner, answer, native("assistant.message", content="outer", messageId="n"))
    own = [event for event in events if event.agent_id]
    assert {(event.agent_id, event.agent_name) for event in own} == {("x", "helper")}
    assert [event.type for event in events].count("user_message") == 1
    assert builder.finish("completed").output == "outer"


def test_a_thought_is_told_once_per_agent_turn(mapped: Any) -> None:
    message = native("assistant.message", content="", reasoningText="hmm", messageId="m", toolRequests=[{}])
    again = native("assistant.reasoning", content="hmm", ephemeral=True)
    events = mapped(*prompt(), *turn("0", message, again), *turn("1", again, message))
    assert [event.data["content"] for event in events if event.type == "reasoning"] == ["hmm", "hmm"]
    assert not [event for event in events if event.type == "assistant_message"]


def test_parts_of_a_message_are_joined(mapped: Any) -> None:
    parts = [
        native("assistant.message", content=text, messageId="m", chunkIndex=index, chunkCount=3)
        for index, text in ((1, "b"), (0, "a"), (2, "c"))
    ]
    events = mapped(*prompt(), *parts)
    assert [event.data["content"] for event in events if event.type == "assistant_message"] == ["abc"]


def test_failed_and_shell_results(mapped: Any) -> None:
    denied = native("tool.execution_complete", toolCallId="a", success=False, error={"message": "no", "code": "denied"})
    shell = native(
        "tool.execution_complete",
        toolCallId="b",
        success=True,
        result={"content": "x", "detailedContent": "d"},
        shellExecution={"exitCode": 3},
    )
    part = native(
        "tool.execution_complete",
        toolCallId="c",
        success=True,
        result={"content": "x", "contents": [{"type": "shell_exit", "exitCode": 4}]},
    )
    starts = [native("tool.execution_start", toolCallId=name, toolName="bash", mcpServerName="m") for name in "abc"]
    events = mapped(*prompt(), *starts, denied, shell, part)
    first, second, third = (event.data for event in events if event.type == "tool_result")
    assert (first["success"], first["result"], first["errorCode"]) == (False, "no", "denied")
    assert (second["success"], second["exitCode"], second["detail"]) == (True, 3, "d")
    assert third["exitCode"] == 4
    assert events[1].data["mcpServer"] == "m"


def test_errors_and_compactions(mapped: Any) -> None:
    events = mapped(
        *prompt(),
        native("session.error", errorType="query", message="bad", statusCode=400, url="u"),
        native("session.compaction_start"),
        native("session.compaction_complete", success=True, summaryContent="long", tokensRemoved=4),
        native("session.compaction_complete", success=False),
        native("session.truncation", tokens=1),
    )
    assert shown(events[1:]) == [
        ("error", {"message": "bad", "type": "query", "code": 400, "url": "u"}),
        ("system", {"eventType": "compaction_start"}),
        ("system", {"eventType": "compaction", "success": True, "tokensRemoved": 4}),
        ("system", {"eventType": "compaction_failed", "success": False}),
        ("system", {"eventType": "truncation", "tokens": 1}),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "system.message",
        "permission.requested",
        "hook.start",
        "assistant.message_delta",
        "tool.execution_partial_result",
        "tool.execution_progress",
        "session.title_changed",
        "session.usage_info",
        "skill.context_delivered_ref",
        "session.start",
    ],
)
def test_what_is_dropped(mapped: Any, kind: str) -> None:
    assert len(mapped(*prompt(), native(kind, content="x"))) == 1


@pytest.mark.parametrize("kind", ["abort", "subagent.completed", "session.model_change", "of.the.future"])
def test_what_nobody_knows_is_custom(mapped: Any, kind: str) -> None:
    events = mapped(*prompt(), native(kind, a=1))
    assert (events[-1].type, events[-1].data) == ("custom", {"eventType": kind, "a": 1})


def test_fleeting_events_are_dropped_but_few(mapped: Any) -> None:
    fleeting = [
        native(kind, ephemeral=True) for kind in ("session.idle", "model.call_failure", "assistant.turn_retry", "x")
    ]
    events = mapped(*prompt(), *fleeting)
    assert [event.data["eventType"] for event in events[1:]] == ["model.call_failure", "assistant.turn_retry"]


@pytest.mark.parametrize(
    "kind",
    [
        "assistant.message",
        "assistant.turn_start",
        "assistant.usage",
        "tool.execution_start",
        "tool.execution_complete",
        "skill.invoked",
        "session.error",
        "session.usage_record",
        "session.compaction_complete",
        "user.message",
        "subagent.started",
    ],
)
def test_an_event_without_data_breaks_nothing(mapped: Any, kind: str) -> None:
    odd = {"type": kind, "data": {"result": 5, "error": [], "usage": "x", "contents": 3, "toolRequests": 1}}
    assert mapped(*prompt(), {"type": kind, "data": {}}, odd)
