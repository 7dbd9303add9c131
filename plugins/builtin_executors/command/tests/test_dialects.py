"""What the parsers make of what real agents wrote, whole and damaged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from agent_scenarios import AGENTS, SHELL_IN_STREAM, WRITE_IN_STREAM
from recorded_streams import STREAMS, Stream, golden, output, parsed, stream, streams

from vally import Event, compute_metrics
from vally_executor_command.dialects import DIALECTS, ParsedTurn, TurnOutput

RECORDED = [pytest.param(found, id=found.name) for found in streams()]
JSON_DIALECTS = [name for name in DIALECTS if name != "text"]


def recording(agent: str, scenario: str, turn: int = 0) -> Stream:
    (path,) = STREAMS.glob(f"{agent}-*-{scenario}-{turn}.jsonl")
    return stream(path.stem)


def of_type(turn: ParsedTurn, *types: str) -> list[dict[str, Any]]:
    return [event.data for event in turn.events if event.type in types]


def known(events: tuple[Event, ...]) -> list[Event]:
    """The events without what is only kept."""
    return [event for event in events if event.type != "custom"]


def parse(dialect: str, *lines: object, complete: bool = True, **facts: Any) -> ParsedTurn:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    return DIALECTS[dialect](TurnOutput(text=text, complete=complete, **facts))


@pytest.mark.parametrize("found", RECORDED)
def test_a_recording_gives_the_golden_events(found: Stream) -> None:
    assert golden(found.name) == (STREAMS / f"{found.name}.golden.json").read_text()


@pytest.mark.parametrize("agent", AGENTS)
def test_all_agents_tell_the_same_story(agent: str) -> None:
    first, second = (parsed(recording(agent, "turns", turn)) for turn in (0, 1))
    calls = of_type(first, "tool_call")
    assert [call["toolName"] for call in calls] == [WRITE_IN_STREAM[agent], SHELL_IN_STREAM[agent]]
    assert "hello.txt" in json.dumps(calls[0]["arguments"])
    assert "echo seen; exit 3" in calls[1]["arguments"]["command"]
    results = of_type(first, "tool_result")
    assert [result["toolCallId"] for result in results] == [call["toolCallId"] for call in calls]
    assert results[0]["success"]
    assert "seen" in results[1]["result"]
    assert results[1].get("exitCode") == (None if agent == "gemini" else 3)
    assert [message["content"] for message in of_type(first, "assistant_message")] == ["The first is done."]
    assert [message["content"] for message in of_type(second, "assistant_message")] == ["The second is done."]
    assert of_type(first, "reasoning") == ([] if agent == "gemini" else [{"content": "Thinking about it."}])
    assert first.session_id
    assert second.session_id in (first.session_id, None)
    assert (first.error, first.end_reason, first.unreadable, first.unfinished) == (None, None, None, False)


@pytest.mark.parametrize("agent", AGENTS)
def test_turns_and_tokens_of_each_prompt(agent: str) -> None:
    found = []
    for turn in (0, 1):
        metrics = compute_metrics(list(parsed(recording(agent, "turns", turn)).events))
        usage = metrics.token_usage
        found.append((metrics.turn_count, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens))
    assert found == [(3, 3300, 35, 400), (2, 2700, 15, 0)]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refused_request_has_its_status(agent: str) -> None:
    turn = parsed(recording(agent, "refused"))
    assert turn.status == 400
    assert "scripted failure" in str(turn.error)
    assert not turn.acted
    assert not turn.waiting


@pytest.mark.parametrize("agent", ["claude", "copilot"])
def test_what_a_sub_agent_does_has_its_id_and_name(agent: str) -> None:
    turn = parsed(recording(agent, "sub-agent"))
    said = [event for event in turn.events if event.data.get("content") == "Hello from below."]
    assert [event.type for event in said] == ["assistant_message"]
    assert said[0].agent_id
    assert said[0].agent_name == "general-purpose"
    assert None in [event.agent_id for event in turn.events if event.data.get("content") == "The sub-agent greeted."]


@pytest.mark.parametrize("found", RECORDED)
def test_a_stream_whose_last_line_is_cut(found: Stream) -> None:
    *lines, last = output(found).text.strip("\n").split("\n")
    before = parsed(found, text="".join(line + "\n" for line in lines), complete=False, usage="").events
    cut = parsed(found, text="\n".join([*lines, last[: len(last) // 2]]), complete=False, usage="").events
    assert known(cut) == known(before)
    told = [event.data for event in cut if event not in before]
    assert told == [{"eventType": "stdout", "text": last[: len(last) // 2]}]


@pytest.mark.parametrize("found", RECORDED)
def test_a_stream_may_be_cut_anywhere(found: Stream) -> None:
    text = output(found).text
    whole = known(parsed(found).events)
    for place in range(0, len(text), max(1, len(text) // 150)):
        some = known(parsed(found, text=text[:place], complete=False, usage="").events)
        calls = [event.data["toolCallId"] for event in some if event.type == "tool_call"]
        assert calls == [event.data["toolCallId"] for event in whole if event.type == "tool_call"][: len(calls)]


@pytest.mark.parametrize("found", RECORDED)
def test_unknown_types_and_other_lines_are_kept_and_change_nothing(found: Stream) -> None:
    lines = output(found).text.strip("\n").split("\n")
    place = len(lines) // 2
    lines[place:place] = ['{"type": "brand.new", "data": {"a": 1}, "b": [2]}', "Warning: \u2028 not JSON", "[1, 2]", ""]
    turn = parsed(found, text="\r\n".join(lines))
    assert known(turn.events) == known(parsed(found).events)
    added = [event.data["eventType"] for event in turn.events if event.data.get("eventType") in ("brand.new", "stdout")]
    assert added == ["brand.new", "stdout", "stdout"]


def damaged(value: Any, source: random.Random) -> Iterator[Any]:
    """The value with one part after the other replaced by something of another kind."""
    others: list[Any] = [None, True, -1, 1e308, "", "x", [], [None], {}, {"type": "text"}]
    parts = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, part in parts:
        for new in (source.choice(others), *damaged(part, source)):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = new
            yield copy


@pytest.mark.parametrize("found", RECORDED)
def test_values_of_any_kind_are_survived(found: Stream) -> None:
    source = random.Random(found.name)
    lines = list(dict.fromkeys(output(found).text.strip("\n").split("\n")))
    for index, line in enumerate(lines):
        for changed in damaged(json.loads(line), source):
            turn = parsed(found, text="\n".join([*lines[:index], json.dumps(changed), *lines[index + 1 :]]))
            compute_metrics(list(turn.events))
            break_free = json.dumps([event.data for event in turn.events])
            assert break_free


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"type":' * 50_000, "9" * 10_000, '{"type": NaN}', "\0", "null", '""']
)
def test_lines_that_no_agent_writes(dialect: str, text: str) -> None:
    turn = DIALECTS[dialect](TurnOutput(text=text))
    assert {event.type for event in turn.events} <= {"custom"}


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
@pytest.mark.parametrize(
    ("text", "beginning"), [("", ""), ("  \n", ""), ("usage: agent [options]\n" * 20, "usage: agent [o")]
)
def test_output_that_has_nothing_of_the_dialect(dialect: str, text: str, beginning: str) -> None:
    unreadable = DIALECTS[dialect](TurnOutput(text=text)).unreadable
    assert unreadable is not None
    assert unreadable.startswith(beginning)
    assert len(unreadable) <= 200


def test_events_without_a_time_of_their_own_have_that_of_their_line() -> None:
    times = ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z")
    item = {"type": "agent_message", "id": "1", "text": "hi"}
    turn = parse("codex", {"type": "turn.started"}, {"type": "item.completed", "item": item}, times=times)
    assert [event.timestamp for event in turn.events] == list(times)


def codex_turn(tokens: int) -> list[dict[str, Any]]:
    item = {"type": "agent_message", "id": "item_0", "text": "ok"}
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 1}
    return [
        {"type": "turn.started"},
        {"type": "item.completed", "item": item},
        {"type": "turn.completed", "usage": usage},
    ]


def test_dx_1_usage_of_codex_is_cumulative() -> None:
    first = parse("codex", *codex_turn(10_680))
    second = parse("codex", *codex_turn(16_163), before=first.totals)
    assert [of_type(turn, "token_usage")[0]["inputTokens"] for turn in (first, second)] == [10_680, 5_483]
    # A thread that was lost counts from zero again.
    third = parse("codex", *codex_turn(4_000), before=second.totals)
    assert of_type(third, "token_usage")[0]["inputTokens"] == 4_000


def test_dx_2_items_of_type_error_are_warnings() -> None:
    warning = {"type": "error", "id": "item_0", "message": "Model metadata for `m` not found"}
    turn = parse("codex", {"type": "item.completed", "item": warning}, *codex_turn(5))
    assert (turn.error, compute_metrics(list(turn.events)).error_count) == (None, 0)


def test_an_error_that_codex_overcomes_is_none() -> None:
    again = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 503 Service Unavailable)"}
    assert parse("codex", again, *codex_turn(5)).error is None
    stopped = parse("codex", {"type": "turn.started"}, again, complete=False)
    assert (stopped.status, stopped.waiting) == (503, True)
    ended = parse("codex", {"type": "turn.started"}, again)
    assert (ended.status, ended.waiting) == (503, False)


@pytest.mark.parametrize(
    ("item", "call", "result"),
    [
        (
            {"type": "mcp_tool_call", "server": "calc", "tool": "add", "arguments": {"a": 1}, "status": "completed",
             "result": {"content": [{"type": "text", "text": "3"}], "structured_content": None}, "error": None},
            {"toolName": "mcp__calc__add", "arguments": {"a": 1}, "mcpServer": "calc"},
            {"success": True, "result": "3"},
        ),
        (
            {"type": "mcp_tool_call", "server": "calc", "tool": "add", "arguments": {}, "status": "failed",
             "result": None, "error": {"message": "no"}},
            {"toolName": "mcp__calc__add", "arguments": {}, "mcpServer": "calc"},
            {"success": False, "result": "no"},
        ),
        (
            {"type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "completed"},
            {"toolName": "apply_patch", "arguments": {"changes": [{"path": "a", "kind": "add"}]}},
            {"success": True},
        ),
        (
            {"type": "command_execution", "command": "sh -x 'unclosed", "aggregated_output": "", "exit_code": None,
             "status": "declined"},
            {"toolName": "bash", "arguments": {"command": "sh -x 'unclosed"}},
            {"success": False, "result": "", "errorCode": "declined"},
        ),
    ],
    ids=["mcp", "mcp-failed", "file-change", "declined"],
)  # fmt: skip
def test_items_of_codex(item: dict[str, Any], call: dict[str, Any], result: dict[str, Any]) -> None:
    turn = parse("codex", {"type": "turn.started"}, {"type": "item.completed", "item": {"id": "item_7", **item}})
    assert of_type(turn, "tool_call") == [{"toolCallId": "item_7", **call}]
    assert of_type(turn, "tool_result") == [{"toolCallId": "item_7", "toolName": call["toolName"], **result}]


def test_dx_4_opencode_adds_cached_tokens() -> None:
    tokens = {"input": 2487, "output": 46, "reasoning": 0, "cache": {"read": 7, "write": 0}}
    (usage,) = of_type(parse("opencode", {"type": "step_finish", "part": {"tokens": tokens}}), "token_usage")
    assert (usage["inputTokens"], usage["outputTokens"], usage["cacheReadTokens"]) == (2494, 46, 7)


@pytest.mark.parametrize(("reason", "end"), [("stop", None), ("length", "budget"), ("content-filter", "refused")])
def test_how_a_step_of_opencode_ends(reason: str, end: str | None) -> None:
    assert parse("opencode", {"type": "step_finish", "part": {"reason": reason, "cost": 0.5}}).end_reason == end


def claude_result(**facts: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", **facts}


def test_dx_6_the_exit_code_of_a_failed_command() -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": "Exit code 3\nhi", "is_error": True}
    (result,) = of_type(parse("claude", {"type": "user", "message": {"content": [block]}}), "tool_result")
    assert (result["success"], result["exitCode"]) == (False, 3)


@pytest.mark.parametrize(
    ("facts", "end", "error"),
    [
        ({}, None, None),
        ({"subtype": "error_max_turns", "is_error": True}, "budget", None),
        ({"stop_reason": "refusal"}, "refused", None),
        ({"stop_reason": "max_tokens"}, "budget", None),
        ({"is_error": True, "result": "API Error: no", "api_error_status": 529}, None, "API Error: no"),
        ({"subtype": "error_during_execution", "errors": ["a", "b"]}, None, "a; b"),
        ({"subtype": "error_during_execution"}, None, "error_during_execution"),
    ],
)
def test_how_claude_may_end(facts: dict[str, Any], end: str | None, error: str | None) -> None:
    turn = parse("claude", claude_result(**facts))
    assert (turn.end_reason, turn.error, turn.status) == (end, error, facts.get("api_error_status"))


def test_an_answer_of_claude_that_only_the_result_tells() -> None:
    turn = parse("claude", claude_result(result="Total cost: $0.10"))
    assert [event.type for event in known(turn.events)] == ["turn_start", "assistant_message", "turn_end"]
    assert of_type(turn, "assistant_message") == [{"content": "Total cost: $0.10"}]
    assert of_type(parse("claude", claude_result(result="no", is_error=True)), "assistant_message") == []


@pytest.mark.parametrize("facts", [{}, {"model": "<synthetic>"}])
def test_an_answer_of_claude_is_told_once(facts: dict[str, str]) -> None:
    message = {"id": "1", "content": [{"type": "text", "text": "Done."}], **facts}
    turn = parse("claude", {"type": "assistant", "message": message}, claude_result(result="Done."))
    assert len(of_type(turn, "assistant_message")) == (0 if facts else 1)


def test_usage_of_claude_without_a_part_of_its_own_is_cumulative() -> None:
    def result(tokens: int) -> dict[str, Any]:
        return claude_result(modelUsage={"m": {"inputTokens": tokens, "outputTokens": 1, "costUSD": tokens / 1000}})

    first = parse("claude", result(100))
    second = parse("claude", result(250), before=first.totals)
    (usage,) = of_type(second, "token_usage")
    assert (usage["inputTokens"], usage["outputTokens"], usage["cost"]["amount"]) == (150, 0, pytest.approx(0.15))


def test_requests_that_claude_repeats() -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    answer = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "ok"}]}}
    waiting = parse("claude", retry, complete=False)
    assert (waiting.error, waiting.status, waiting.waiting) == ("rate_limit", 429, True)
    assert parse("claude", retry, answer, complete=False).error is None


def test_messages_that_nobody_wrote_are_only_kept() -> None:
    synthetic = {"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "no"}]}}
    reminder = {"type": "user", "isSynthetic": True, "message": {"content": "remember"}}
    turn = parse("claude", synthetic, reminder)
    assert {event.type for event in turn.events} == {"custom"}


def test_servers_and_skills_of_claude() -> None:
    servers = [{"name": "b", "status": "failed"}, {"name": "a", "status": "connected"}]
    init = {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": servers, "skills": ["x"]}
    turn = parse("claude", init)
    assert (turn.failed_servers, turn.skills) == ({"b": "its status is failed"}, ("x",))
    assert turn.metadata["mcpServers"] == ["a", "b"]


def test_pieces_of_gemini_are_joined() -> None:
    pieces = [{"type": "message", "role": "assistant", "content": text, "delta": True} for text in ("a", "b")]
    turn = parse("gemini", *pieces, {"type": "message", "role": "assistant", "content": "c"})
    assert [message["content"] for message in of_type(turn, "assistant_message")] == ["ab", "c"]
    assert of_type(parse("gemini", *pieces, complete=False), "assistant_message") == [{"content": "ab"}]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"type": "unknown", "message": '[API Error: {"error":{"code":429}}]'}, (429, None)),
        ({"type": "FatalTurnLimitedError", "message": "Reached max session turns"}, (None, "budget")),
        ({"type": "unknown", "message": "something"}, (None, None)),
    ],
)
def test_how_gemini_may_fail(error: dict[str, Any], expected: tuple[int | None, str | None]) -> None:
    turn = parse("gemini", {"type": "result", "status": "error", "error": error}, complete=False)
    assert (turn.status, turn.end_reason) == expected
    assert (turn.error is None) == (turn.end_reason is not None)


def test_prices_and_usage_of_copilot_are_those_of_the_session() -> None:
    def usage(tokens: int, price: int) -> str:
        metrics = {"usage": {"inputTokens": tokens, "outputTokens": 1}, "totalNanoAiu": price}
        return json.dumps({"modelMetrics": {"m": metrics}})

    end = {"type": "result", "sessionId": "s", "exitCode": 0}
    first = parse("copilot", end, usage=usage(10, 5))
    second = parse("copilot", end, usage=usage(30, 12), before=first.totals)
    found = [of_type(turn, "token_usage")[0] for turn in (first, second)]
    assert [(item["inputTokens"], item["cost"]["amount"]) for item in found] == [(10, 5), (20, 7)]
    assert of_type(parse("copilot", end, usage="{cut"), "token_usage") == []


def test_errors_and_servers_of_copilot() -> None:
    error = {"errorType": "rate_limit", "message": "slow down", "url": "u"}
    failed = {"serverName": "bad", "status": "failed", "error": "exit code 4"}
    turn = parse(
        "copilot",
        {"type": "session.mcp_server_status_changed", "data": failed},
        {"type": "session.error", "data": error},
    )
    assert (turn.error, turn.status, turn.failed_servers) == ("slow down", 429, {"bad": "exit code 4"})
    assert of_type(turn, "error") == [{"message": "slow down", "type": "rate_limit", "url": "u"}]


def test_requests_that_copilot_repeats() -> None:
    failure = {"type": "model.call_failure", "data": {"statusCode": 429}}
    waiting = parse("copilot", failure, complete=False)
    assert (waiting.status, waiting.waiting, waiting.events[0].data["eventType"]) == (429, True, "model.call_failure")
    answer = {"type": "assistant.message", "data": {"content": "ok"}}
    assert parse("copilot", failure, answer, complete=False).error is None


def test_the_text_dialect_takes_everything() -> None:
    turn = DIALECTS["text"](TurnOutput(text="\x1b[1mhi\x1b[0m\n"))
    assert of_type(turn, "assistant_message") == [{"content": "hi\n"}]
