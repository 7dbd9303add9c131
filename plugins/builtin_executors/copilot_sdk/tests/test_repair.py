"""Completing what the SDK told by what the runtime wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vally_executor_copilot_sdk.native import Native, read_session, session_file
from vally_executor_copilot_sdk.repair import repaired, unanswered


def start(call: str) -> Native:
    return {"id": f"s-{call}", "type": "tool.execution_start", "data": {"toolCallId": call, "toolName": "bash"}}


def complete(call: str, text: str = "out", *, success: bool = True) -> Native:
    data = {"toolCallId": call, "success": success, "result": {"content": text}}
    return {"id": f"c-{call}", "type": "tool.execution_complete", "data": data}


def usage(call: str, tokens: int) -> Native:
    return {"id": f"u-{call}", "type": "assistant.usage", "data": {"apiCallId": call, "inputTokens": tokens}}


def record(call: str, tokens: int) -> Native:
    data = {"usage": {"apiCallId": call, "inputTokens": tokens, "outputTokens": 0}}
    return {"id": f"r-{call}", "type": "session.usage_record", "data": data}


def ids(events: Any) -> list[str]:
    return [event["id"] for event in events]


def test_nothing_to_do() -> None:
    live = [start("a"), usage("x", 5), complete("a")]
    found = repaired(live, [start("a"), record("x", 5), complete("a")])
    assert list(found.events) == live
    assert not found.changed


def test_missing_results_take_their_place() -> None:
    live = [start("a"), start("b"), usage("x", 5), complete("b"), start("c"), complete("c")]
    found = repaired(live, [start("a"), start("b"), complete("a"), complete("b"), start("c"), complete("c")])
    assert ids(found.events) == ["s-a", "s-b", "c-a", "u-x", "c-b", "s-c", "c-c"]
    assert (found.tool_results, found.usage_records, found.others) == (1, 0, 0)


def test_several_missing_in_a_row_keep_their_order() -> None:
    found = repaired([start("a")], [start("a"), complete("a"), start("b"), complete("b")])
    assert ids(found.events) == ["s-a", "c-a", "s-b", "c-b"]
    assert (found.tool_results, found.others) == (2, 1)


def test_an_empty_result_is_filled() -> None:
    live = [start("a"), complete("a", "")]
    found = repaired(live, [start("a"), complete("a", "text")])
    assert found.events[1]["data"]["result"]["content"] == "text"
    assert found.tool_results == 1
    assert not repaired(live, [start("a"), complete("a", "")]).changed
    failed = [start("a"), complete("a", "", success=False)]
    assert not repaired(failed, [start("a"), complete("a", "text")]).changed


def test_usage_that_is_missing_or_too_low() -> None:
    live = [start("a"), usage("x", 5), usage("y", 9)]
    found = repaired(live, [start("a"), record("x", 7), record("y", 3), record("z", 1)])
    assert ids(found.events) == ["s-a", "r-z", "r-x", "u-y"]
    assert found.usage_records == 2


def test_other_events_of_the_file_are_left_there() -> None:
    file = [{"id": "1", "type": "system.message", "data": {}}, {"id": "2", "type": "permission.requested", "data": {}}]
    assert not repaired([], file).changed


def test_calls_without_a_result() -> None:
    assert unanswered([start("a"), start("b"), complete("b", ""), start("c"), complete("c")]) == {"a", "b"}


def test_reading_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = session_file(tmp_path, "session")
    assert read_session(path) == []
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type": "a", "data": {"x": 1}}\n[1]\n{"type": 3}\n{"type": "b"}\n\xff\n{"type": "c", "da')
    assert read_session(path) == [{"type": "a", "data": {"x": 1}}, {"type": "b", "data": {}}]
