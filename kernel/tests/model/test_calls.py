"""Tool calls with their results, steps and batches."""

from __future__ import annotations

from typing import Any

import pytest

from vally.model.calls import ToolCall, tool_calls
from vally.model.trajectory import Event


def _call(name: str = "t", call_id: str | None = None, *, agent: str | None = None, **data: Any) -> Event:
    ident = {"toolCallId": call_id} if call_id else {}
    return Event(
        type="tool_call", agent_id=agent, turn=data.pop("turn", None), data={"toolName": name, **ident, **data}
    )


def _result(name: str = "t", call_id: str | None = None, *, agent: str | None = None, **data: Any) -> Event:
    ident = {"toolCallId": call_id} if call_id else {}
    return Event(type="tool_result", agent_id=agent, data={"toolName": name, **ident, **data})


def _mark(kind: str, turn_id: str | None, agent: str | None = None) -> Event:
    return Event(type=kind, agent_id=agent, data={"turnId": turn_id} if turn_id else {})


def _results(events: list[Event]) -> list[Any]:
    return [call.result.data["result"] if call.result else None for call in tool_calls(events)]


@pytest.mark.parametrize(
    ("events", "results"),
    [
        pytest.param([_call("a", "1"), _call("a", "2"), _result("a", "2", result=2)], [None, 2], id="by id"),
        pytest.param([_result("a", "1", result=0), _call("a", "1"), _result("a", "1", result=1)], [1], id="later only"),
        pytest.param([_call("a", "1"), _result("a", "1", result=1), _result("a", "1", result=2)], [1], id="first"),
        pytest.param(
            [
                _call("a", "1", agent="x"),
                _result("a", "1", agent="y", result=1),
                _result("a", "1", agent="x", result=2),
            ],
            [2],
            id="same agent",
        ),
        pytest.param([_call("a", "1", agent="x"), _result("a", "1", result=1)], [1], id="one without agent"),
        pytest.param(
            [_call("a"), _call("b"), _result("b", result="b"), _result("a", result="a")], ["a", "b"], id="by name"
        ),
        pytest.param(
            [_call("a"), _call("a", "1"), _result("a", "1", result=1), _result("a", result=2)], [2, 1], id="unpaired"
        ),
        pytest.param([_call("a"), _call("a"), _result("a", result=1)], [1, None], id="each result once"),
    ],
)
def test_results(events: list[Event], results: list[Any]) -> None:
    assert _results(events) == results


def test_results_outside_the_view_are_found() -> None:
    call, result = _call("a", "1"), _result("a", "1", result="x")
    (found,) = tool_calls([call], [call, result])
    assert found.result is result
    assert found.result_text == "x"


def test_a_view_of_other_events_is_read_by_itself() -> None:
    (found,) = tool_calls([_call("a", "1")], [_result("a", "1", result="x")])
    assert found.result is None


@pytest.mark.parametrize(
    ("data", "text"),
    [({"result": "x"}, "x"), ({"result": {"a": 1.0, "ü": [None]}}, '{"a":1,"ü":[null]}'), ({}, None)],
)
def test_result_text(data: dict[str, Any], text: str | None) -> None:
    (found,) = tool_calls([_call("a", "1"), _result("a", "1", **data)])
    assert found.result_text == text


def test_an_interrupted_call_has_no_result_text() -> None:
    (found,) = tool_calls([_call()])
    assert found.result_text is None


@pytest.mark.parametrize(
    ("data", "arguments"),
    [({}, "{}"), ({"arguments": None}, "null"), ({"arguments": {"b": 1, "a": "é"}}, '{"b":1,"a":"é"}')],
)
def test_arguments(data: dict[str, Any], arguments: str) -> None:
    (found,) = tool_calls([_call("x", "7", **data)])
    assert found.arguments_json == arguments
    assert (found.name, found.id) == ("x", "7")


def _groups(events: list[Event]) -> list[tuple[int, int]]:
    return [(call.step, call.batch) for call in tool_calls(events)]


@pytest.mark.parametrize(
    ("events", "groups"),
    [
        pytest.param(
            [_call(turnId="t1"), _result(), _call(turnId="t1"), _call(turnId="t2")],
            [(0, 0), (0, 0), (1, 1)],
            id="turn ids",
        ),
        pytest.param([_call(), _call(), _result(), _call()], [(0, 0), (0, 0), (1, 1)], id="adjacency"),
        pytest.param([_call(), _call(agent="a"), _call()], [(0, 0), (1, 1), (2, 2)], id="adjacency needs one agent"),
        pytest.param([_call(), _call(turnId="t"), _call()], [(0, 0), (1, 1), (2, 2)], id="a call with id in between"),
        pytest.param(
            [_mark("turn_start", "1"), _call(), _result(), _call(), _mark("turn_end", "1"), _call()],
            [(0, 0), (0, 1), (1, 2)],
            id="open turn",
        ),
        pytest.param(
            [_mark("turn_start", "1"), _mark("turn_start", "1", "a"), _call(), _call(agent="a")],
            [(0, 0), (1, 1)],
            id="turns of agents",
        ),
        pytest.param(
            [_call(turnId="0", turn=0), _call(turnId="0", turn=1), _call(turnId="0", turn=1)],
            [(0, 0), (1, 1), (1, 1)],
            id="conversation turns",
        ),
        pytest.param(
            [
                Event(type="user_message"),
                _call(turnId="0"),
                Event(type="user_message", agent_id="a"),
                _call(turnId="0"),
                Event(type="user_message"),
                _call(turnId="0"),
            ],
            [(0, 0), (0, 0), (1, 1)],
            id="ids restart with a message",
        ),
        pytest.param(
            [
                _mark("turn_start", "1"),
                _mark("turn_start", "2"),
                _mark("turn_end", "1"),
                _call(),
                _mark("turn_end", None),
                _call(),
            ],
            [(0, 0), (1, 1)],
            id="ends close their own turn",
        ),
    ],
)
def test_steps_and_batches(events: list[Event], groups: list[tuple[int, int]]) -> None:
    assert _groups(events) == groups


def test_numbers_start_at_0_in_each_view() -> None:
    events = [_call("a", turnId="1"), _call("b", turnId="2")]
    (found,) = tool_calls(events[1:], events)
    assert isinstance(found, ToolCall)
    assert (found.name, found.step, found.batch) == ("b", 0, 0)
