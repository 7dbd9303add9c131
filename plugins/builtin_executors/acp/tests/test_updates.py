"""From updates to events: recorded sessions of the five agents, and what no agent of them sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally import TrajectoryBuilder
from vally.testing import executor_options, stimulus
from vally_executor_acp.quirks import Quirks, quirks_of
from vally_executor_acp.updates import Updates
from vally_executor_acp.usage import Tokens, read_model, read_tokens

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
QUIET = {"custom", "reasoning"}


def builder(directory: Path, *prompts: str) -> TrajectoryBuilder:
    return TrajectoryBuilder(stimulus(*prompts), executor_options(directory), executor="acp")


def play(directory: Path, lines: list[dict[str, Any]], agent: str = "") -> TrajectoryBuilder:
    """Record a session from lines of one key each: `agent`, `prompt`, `update`, `ask`, `denied`, `result`."""
    made = builder(directory, *(line["prompt"] for line in lines if "prompt" in line))
    updates = Updates(made, quirks_of(agent))
    for line in lines:
        ((kind, value),) = line.items()
        if kind == "prompt":
            made.user_message(value)
            updates.begin()
        elif kind == "update":
            updates.take(value)
        elif kind in ("ask", "denied"):
            updates.ask(value).denied = kind == "denied"
        elif kind == "result":
            updates.end(read_tokens(value), model=read_model(value), cost=None, complete=True)
    return made


def shown(made: TrajectoryBuilder) -> list[Any]:
    """The events that matter: types, and what they say."""
    keys = {"assistant_message": ("content",), "tool_call": ("toolName", "arguments")}
    keys["tool_result"] = ("success", "result", "exitCode", "errorCode")
    return [
        (event.type, *(event.data[key] for key in keys.get(event.type, ()) if key in event.data))
        for event in made.events
        if event.type not in QUIET
    ]


START, END = ("turn_start",), ("turn_end",)
FILE = {"path": "/workspace/a.txt"}
CAT = {"command": "cat a.txt; exit 3"}
GOLDEN: dict[str, list[Any]] = {
    "copilot": [
        ("tool_call", "edit", {**FILE, "file_text": "one\n"}),
        ("tool_result", True, "Created file /workspace/a.txt with 4 characters"),
        ("tool_call", "bash", {**CAT, "description": "show"}),
        ("tool_result", True, "one\n<shellId: 0 completed with exit code 3>", 3),
    ],
    "claude": [
        ("tool_call", "Write", {"file_path": "/workspace/a.txt", "content": "one\n"}),
        (
            "tool_result",
            True,
            "File created successfully at: /workspace/a.txt (file state is current in your context — no need to Read "
            "it back)",
        ),
        ("tool_call", "Bash", {**CAT, "description": "show"}),
        ("tool_result", False, "Exit code 3\none", 3),
    ],
    "codex": [
        ("tool_call", "bash", {"command": "echo one > a.txt", "cwd": "/workspace"}),
        ("tool_result", True, "", 0),
        ("tool_call", "bash", {**CAT, "cwd": "/workspace"}),
        ("tool_result", False, "one\n", 3),
    ],
    "gemini": [
        ("tool_call", "edit", FILE),
        ("tool_result", True, ""),
        ("tool_call", "bash", CAT),
        ("tool_result", True, "[current working directory /workspace] (show)"),
    ],
    "opencode": [
        ("tool_call", "edit", {"filePath": "/workspace/a.txt", "content": "one\n"}),
        ("tool_result", True, "Wrote file successfully."),
        ("tool_call", "bash", {**CAT, "description": "show", "cwd": "/workspace"}),
        ("tool_result", True, "one\n", 3),
    ],
}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_session(path: Path, tmp_path: Path) -> None:
    first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made = play(tmp_path, lines, first["agent"])
    first_call, first_result, second_call, second_result = GOLDEN[path.stem.partition("-")[0]]
    assert shown(made) == [
        ("user_message",),
        *(START, first_call, first_result, END),
        *(START, second_call, second_result, END),
        *(START, ("assistant_message", "finished over acp"), ("token_usage",), END),
        ("user_message",),
        *(START, ("assistant_message", "two"), ("token_usage",), END),
    ]
    thoughts = [event.data["content"].strip("*\n") for event in made.events if event.type == "reasoning"]
    assert thoughts == ["Thinking."]
    trajectory = made.finish("completed")
    calls = [event.data for event in trajectory.events if event.type in ("tool_call", "tool_result")]
    assert [call["toolCallId"] for call in calls[::2]] == [call["toolCallId"] for call in calls[1::2]]
    assert all(call["title"] for call in calls[::2])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_session_that_was_cut_or_has_unknown_updates(path: Path, tmp_path: Path) -> None:
    first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for end in range(len(lines)):
        play(tmp_path, lines[:end], first["agent"])
    strange = {"update": {"sessionUpdate": "never_heard_of", "x": 1}}
    known = shown(play(tmp_path, lines, first["agent"]))
    assert shown(play(tmp_path, [item for line in lines for item in (line, strange)], first["agent"])) == known


def said(text: Any, kind: str = "agent_message_chunk", **more: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}}


def tool(call_id: str, update: str = "tool_call", **more: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": update, "toolCallId": call_id, **more}}


def ended(call_id: str, **more: Any) -> dict[str, Any]:
    return tool(call_id, "tool_call_update", **{"status": "completed", **more})


PROMPT, RESULT = {"prompt": "hi"}, {"result": {}}


def events_of(directory: Path, *lines: dict[str, Any], agent: str = "") -> list[Any]:
    return shown(play(directory, [PROMPT, *lines, RESULT], agent))[1:]


def test_calls_side_by_side_are_one_agent_turn(tmp_path: Path) -> None:
    found = events_of(tmp_path, said("Both."), tool("a", title="A"), tool("b"), ended("b"), ended("a"), said("Ok."))
    assert [event[0] for event in found].count("turn_start") == 2
    assert found[-3:] == [START, ("assistant_message", "Ok."), END]


def test_text_between_calls_that_have_not_ended_opens_no_turn(tmp_path: Path) -> None:
    found = events_of(tmp_path, tool("a"), said("Wait."), ended("a"), said("Ok."))
    assert [event[0] for event in found] == [
        *("turn_start", "tool_call", "assistant_message", "tool_result", "turn_end"),
        *("turn_start", "assistant_message", "turn_end"),
    ]


def test_messages_with_ids_of_their_own_are_told_apart(tmp_path: Path) -> None:
    found = events_of(tmp_path, said("A", messageId="1"), said("B", messageId="1"), said("C", messageId="2"))
    assert [event[1] for event in found if event[0] == "assistant_message"] == ["AB", "C"]


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"kind": "read"}, "view"),
        ({"kind": "edit"}, "edit"),
        ({"kind": "delete"}, "delete"),
        ({"kind": "move"}, "move"),
        ({"kind": "search"}, "grep"),
        ({"kind": "execute"}, "bash"),
        ({"kind": "fetch"}, "web_fetch"),
        ({"kind": "think"}, "think"),
        ({"kind": "other", "title": "calc-add two numbers"}, "calc-add"),
        ({"title": "task"}, "task"),
        ({}, "other"),
        ({"kind": "execute", "_meta": {"claudeCode": {"toolName": "Bash"}}}, "Bash"),
        ({"kind": "other", "title": "Using skill: x", "rawInput": {"skill": "x"}}, "skill"),
    ],
)
def test_names_of_tools(tmp_path: Path, facts: dict[str, Any], name: str) -> None:
    found = events_of(tmp_path, tool("a", **facts))
    assert found[1][:2] == ("tool_call", name)


@pytest.mark.parametrize(
    ("facts", "arguments"),
    [
        (
            {"rawInput": {"command": ["bash", "-lc", "ls | wc"]}},
            {"command": "ls | wc", "argv": ["bash", "-lc", "ls | wc"]},
        ),
        ({"rawInput": {"command": ["ls", "a b"]}}, {"command": "ls 'a b'", "argv": ["ls", "a b"]}),
        ({"rawInput": {"command": ["bash", "-c"]}}, {"command": "bash -c", "argv": ["bash", "-c"]}),
        ({"rawInput": "text"}, "text"),
        ({"rawInput": [1]}, [1]),
        ({"kind": "execute", "title": "ls"}, {"command": "ls"}),
        ({"kind": "read", "locations": [{"path": "/a"}, {"path": "/b"}]}, {"path": "/a"}),
        ({"kind": "read", "locations": ["odd"]}, {}),
    ],
)
def test_arguments(tmp_path: Path, facts: dict[str, Any], arguments: Any) -> None:
    assert events_of(tmp_path, tool("a", **facts))[1][2] == arguments


@pytest.mark.parametrize(
    ("facts", "result"),
    [
        ({"rawOutput": "out"}, "out"),
        ({"rawOutput": {"output": "out"}}, "out"),
        ({"rawOutput": {"content": [{"type": "text", "text": "out"}]}}, "out"),
        ({"rawOutput": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"rawOutput": {"sum": 5}}, '{"sum": 5}'),
        ({"rawOutput": {"exit_code": 0}}, ""),
        ({"content": [{"type": "content", "content": {"type": "text", "text": "shown"}}]}, "shown"),
        ({"content": [{"type": "content", "content": {"type": "resource", "resource": {"text": "r"}}}]}, "r"),
        ({"content": [{"type": "diff", "path": "/a"}], "rawOutput": {"message": "done"}}, "done"),
        ({"content": "odd", "rawOutput": 7}, ""),
        ({"_meta": {"terminal_output_delta": {"data": "term"}}}, "term"),
    ],
)
def test_texts_of_results(tmp_path: Path, facts: dict[str, Any], result: str) -> None:
    found = events_of(tmp_path, tool("a"), ended("a", **facts))
    assert found[2] == ("tool_result", True, result)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"rawOutput": {"exit_code": 2}}, 2),
        ({"rawOutput": {"exitCode": 0}}, 0),
        ({"rawOutput": {"metadata": {"exit": 4}}}, 4),
        ({"rawOutput": {"contents": [{"exitCode": 5}]}}, 5),
        ({"_meta": {"terminal_exit": {"exit_code": 6}}}, 6),
        ({"status": "failed", "rawOutput": "Exit code 7\n"}, 7),
        ({"rawOutput": "Exit code 7\n"}, None),
        ({"rawOutput": {"exit_code": True}}, None),
    ],
)
def test_exit_codes(tmp_path: Path, facts: dict[str, Any], code: int | None) -> None:
    made = play(tmp_path, [PROMPT, tool("a", kind="execute"), ended("a", **facts), RESULT])
    (result,) = [event for event in made.events if event.type == "tool_result"]
    assert result.data.get("exitCode") == code


def test_a_tool_of_an_mcp_server_that_the_input_names(tmp_path: Path) -> None:
    given = {"server": "calc", "tool": "add", "arguments": {"a": 2}}
    told = {"result": {"content": [{"type": "text", "text": "the sum is 5"}]}, "error": None}
    lines = [
        PROMPT,
        tool("a", kind="execute", title="mcp.calc.add", rawInput=given),
        ended("a", rawOutput=told),
        RESULT,
    ]
    made = play(tmp_path, lines)
    assert shown(made)[2:4] == [("tool_call", "mcp__calc__add", {"a": 2}), ("tool_result", True, "the sum is 5")]
    (call,) = [event for event in made.events if event.type == "tool_call"]
    assert call.data["mcpServer"] == "calc"


def test_a_call_that_is_first_heard_of_in_a_request(tmp_path: Path) -> None:
    request = {"ask": {"toolCallId": "a", "kind": "execute", "title": "ls", "rawInput": {"command": "ls"}}}
    found = events_of(tmp_path, request, ended("a", rawOutput="x"), said("Ok."))
    assert found[1:3] == [("tool_call", "bash", {"command": "ls"}), ("tool_result", True, "x")]


def test_a_request_changes_nothing_that_the_call_said(tmp_path: Path) -> None:
    request = {"ask": {"toolCallId": "a", "kind": "edit", "title": "Change it", "rawInput": {"diff": "…"}}}
    found = events_of(tmp_path, tool("a", kind="edit", rawInput={"path": "/a"}, title="edit"), request)
    assert found[1] == ("tool_call", "edit", {"path": "/a"})


def test_a_call_that_is_not_allowed(tmp_path: Path) -> None:
    denied = {"denied": {"toolCallId": "a", "kind": "execute", "title": "ls"}}
    told = events_of(tmp_path, denied, ended("a", status="failed", rawOutput="No."), said("Ok."))
    assert told[2] == ("tool_result", False, "No.", "denied")
    untold = events_of(tmp_path, denied, said("Ok."))
    assert untold[2] == ("tool_result", False, "the permission policy does not allow this", "denied")
    assert [event[0] for event in untold[3:]] == ["turn_end", "turn_start", "assistant_message", "turn_end"]
    last = events_of(tmp_path, denied)
    assert last[2] == ("tool_result", False, "the permission policy does not allow this", "denied")


def test_a_call_that_was_interrupted_ends_no_later_turn(tmp_path: Path) -> None:
    lines = [PROMPT, tool("a"), RESULT, PROMPT, said("A."), tool("b"), ended("b"), said("B."), ended("a"), RESULT]
    found = shown(play(tmp_path, lines))
    assert [event[0] for event in found].count("tool_result") == 1
    assert [event[0] for event in found].count("turn_start") == 3


def test_notices_are_no_messages(tmp_path: Path) -> None:
    informational = {"claudeCode": {"kind": "informational"}}
    for agent, notice in (
        ("Copilot", said("Info: /a")),
        ("x/codex-acp", said("Warning: no metadata")),
        ("", said("Be warned.", _meta=informational)),
    ):
        made = play(tmp_path, [PROMPT, notice, said("Ok.", messageId="1"), RESULT], agent)
        assert [event.data["content"] for event in made.events if event.type == "assistant_message"] == ["Ok."]
        assert [event.data["content"] for event in made.events if event.type == "custom"] == [
            notice["update"]["content"]["text"]
        ]


def failure_of(directory: Path, agent: str, *lines: dict[str, Any]) -> tuple[str | None, list[str]]:
    made = builder(directory, "hi")
    updates = Updates(made, quirks_of(agent))
    made.user_message("hi")
    updates.begin()
    for line in lines:
        updates.take(line["update"])
    updates.end(None, model=None, cost=None, complete=True)
    return updates.failure, [event.data["content"] for event in made.events if event.type == "assistant_message"]


def test_failures_that_are_told_as_messages(tmp_path: Path) -> None:
    broken = {
        "update": {
            "sessionUpdate": "session_info_update",
            "_meta": {"codex": {"threadStatus": {"type": "systemError"}}},
        }
    }
    assert failure_of(tmp_path, "Copilot", said("Error: 400 no")) == ("Error: 400 no", [])
    assert failure_of(tmp_path, "Copilot", said("Hm. "), said("Error: x")) == (None, ["Hm. Error: x"])
    assert failure_of(tmp_path, "Copilot", said("Error: x"), said(" is fixed")) == (None, ["Error: x is fixed"])
    assert failure_of(tmp_path, "Copilot", said("Error: x"), tool("a"), said("Ok.")) == (None, ["Error: x", "Ok."])
    assert failure_of(tmp_path, "x/codex-acp", broken, said('{"error": {}}')) == ('{"error": {}}', [])
    assert failure_of(tmp_path, "fake", said("Error: 400 no")) == (None, ["Error: 400 no"])


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"sessionUpdate": None},
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": "text"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 7}, "messageId": []},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "tool_call", "toolCallId": {}, "kind": [], "title": 5, "locations": {}, "_meta": "x"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed", "content": [1, {"content": 2}]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": []},
        {"sessionUpdate": "usage_update", "cost": {"amount": "much", "currency": 1}},
        {"sessionUpdate": "available_commands_update", "availableCommands": [1, {"name": "x"}]},
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "\ud800\x1b[2J\x00"}},
    ],
)
@pytest.mark.parametrize("agent", ["", "Copilot", "x/codex-acp", "gemini-cli"])
def test_no_update_is_too_odd(tmp_path: Path, update: dict[str, Any], agent: str) -> None:
    made = play(tmp_path, [PROMPT, {"update": update}, said("Ok.", messageId="1"), RESULT], agent)
    assert "Ok." in made.finish("completed").output


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({}, None),
        ({"usage": None}, None),
        ({"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}}, None),
        ({"usage": {"inputTokens": 5, "outputTokens": 2}}, Tokens(input=5, output=2)),
        (
            {"usage": {"inputTokens": 5, "outputTokens": 2, "cachedReadTokens": 3, "totalTokens": 7}},
            Tokens(input=5, output=2, cache_read=3),
        ),
        (
            {
                "usage": {
                    "inputTokens": 5,
                    "outputTokens": 2,
                    "cachedReadTokens": 3,
                    "cachedWriteTokens": 1,
                    "totalTokens": 11,
                }
            },
            Tokens(input=9, output=2, cache_read=3, cache_write=1),
        ),
        ({"_meta": {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 2}}}}, Tokens(input=5, output=2)),
        ({"usage": {"inputTokens": "5", "outputTokens": -2}}, None),
    ],
)
def test_counts_of_tokens(response: dict[str, Any], tokens: Tokens | None) -> None:
    assert read_tokens(response) == tokens


def test_counts_of_a_session_are_those_of_its_prompts_together() -> None:
    first, second = Tokens(input=5, output=2, cache_read=1), Tokens(input=12, output=3, cache_read=4)
    assert second.since(first) == Tokens(input=7, output=1, cache_read=3)
    assert first.since(None) == first
    assert quirks_of("Copilot").cumulative_usage
    assert quirks_of("another") == Quirks()
