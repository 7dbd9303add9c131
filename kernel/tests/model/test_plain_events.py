"""Events that are made without validation are those that validation would have made."""

from __future__ import annotations

from typing import Any

import pytest

from vally import Event, RecordError, dump_record, load_trajectory
from vally.model.plain_events import copied_event, plain_event

PLAIN: list[dict[str, Any]] = [
    {"type": "a", "data": {}},
    {"type": "a", "data": {"x": 1, "y": [1, {"z": None}]}, "turn": 0},
    {"type": "tool_call", "timestamp": "2026-01-01T00:00:00Z", "agentId": "x", "agentName": "y", "data": {"a": {}}},
    {"type": "a", "timestamp": None, "turn": None, "agentId": None, "agentName": None, "data": {"é": "é"}},
    {"type": "a", "timestamp": "", "agentId": "", "data": {}},
]
OTHER: list[dict[str, Any]] = [
    {"type": "a"},
    {"type": "a", "data": None},
    {"type": "a", "data": {}, "extra": 1},
    {"type": "a", "data": {}, "agent_id": "x"},
    {"type": "a", "data": {}, "turn": True},
    {"type": "a", "data": {}, "turn": 1.0},
    {"type": "a", "data": {}, "turn": "1"},
    {"type": "a", "data": {}, "timestamp": 0},
    {"type": "a", "data": {}, "timestamp": False},
    {"type": "a", "data": {}, "agentId": 0},
    {"type": "a", "data": {}, "agentName": []},
    {"type": "\ud800", "data": {}},
    {"type": "a", "data": {"\ud800": 1}},
    {"type": "a", "data": {1: 2}},
    {"type": "a", "data": [1]},
    {"type": 1, "data": {}},
]


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_shapes_are_what_validation_makes(value: dict[str, Any]) -> None:
    validated = Event.model_validate(value)
    made = plain_event(value)
    if made is not None:
        assert made == validated
        assert made.model_fields_set == validated.model_fields_set
        assert dump_record(made) == dump_record(validated)
        assert made.data is not value["data"]
    assert load_trajectory({"events": [value]}).events == [validated]


@pytest.mark.parametrize("value", OTHER, ids=repr)
def test_other_shapes_are_left_to_validation(value: dict[str, Any]) -> None:
    assert plain_event(value) is None


def test_most_shapes_are_plain() -> None:
    assert sum(plain_event(value) is not None for value in PLAIN) >= 4


def test_a_misfit_is_dropped_and_the_event_kept() -> None:
    (event,) = load_trajectory({"events": [{"type": "a", "agentId": 5, "turn": "x", "data": {"k": 1}}]}).events
    assert (event.agent_id, event.turn, event.data) == (None, None, {"k": 1})


def test_an_event_that_cannot_be_read_is_named_by_its_pointer() -> None:
    with pytest.raises(RecordError, match=r"^/t/events/1/type must be a string"):
        load_trajectory({"events": [{"type": "a"}, {"type": None}]}, "/t")


@pytest.mark.parametrize("data", [{}, {"a": "x", "n": 1.5}, {"arguments": {"command": "ls"}}])
def test_copies_share_nothing_that_can_change(data: dict[str, Any]) -> None:
    event = Event(type="a", data=data)
    copy = copied_event(event)
    assert copy == event
    assert copy is not None
    copy.data["new"] = 1
    copy.turn = 4
    if "arguments" in data:
        copy.data["arguments"]["new"] = 1
    assert event == Event(type="a", data=data)
    assert event.model_fields_set == {"type", "data"}
    assert "new" not in str(event)


@pytest.mark.parametrize("data", [{"a": [1]}, {"a": {"b": {}}}, {"a": {"b": []}}])
def test_what_is_nested_is_left_to_others(data: dict[str, Any]) -> None:
    assert copied_event(Event(type="a", data=data)) is None


def test_events_with_further_keys_are_left_to_others() -> None:
    assert copied_event(Event.model_validate({"type": "a", "data": {}, "further": {"x": 1}})) is None
