"""Conversation turns of imported and recorded trajectories."""

from __future__ import annotations

from typing import Any

import pytest

from vally.model.trajectory import Event
from vally.model.turns import attribute_turns, partition_turns


def _user(content: Any = "", agent_id: str | None = None) -> Event:
    return Event(type="user_message", agent_id=agent_id, data={"content": content})


STEP = Event(type="turn_end")


@pytest.mark.parametrize(
    ("events", "prompts", "turns"),
    [
        pytest.param([STEP, _user(), _user()], ["p"], [0, 0, 0], id="one prompt"),
        pytest.param([], ["p", "q"], [], id="no events, not all prompts found"),
        pytest.param([STEP, _user("x"), STEP, _user("y"), STEP], ["p", "q"], [0, 0, 0, 1, 1], id="as many"),
        pytest.param(
            [_user("p"), _user("other"), _user("sub", "a"), _user(" q\r\nr "), STEP],
            ["p", "q\nr"],
            [0, 0, 0, 1, 1],
            id="by text",
        ),
        pytest.param([_user("e\u0301"), _user("z"), _user("q")], ["é", "q"], [0, 0, 1], id="NFC"),
        pytest.param([_user("p"), _user("x"), _user("y")], ["p", "q"], [None] * 3, id="a prompt is missing"),
        pytest.param([_user("q"), _user("p"), _user(5)], ["p", "q"], [None] * 3, id="wrong order"),
        pytest.param([_user("p"), _user("p"), _user("p")], ["p", "p"], [0, 1, 1], id="equal prompts"),
    ],
)
def test_attribute_turns(events: list[Event], prompts: list[str], turns: list[int | None]) -> None:
    assert [event.turn for event in attribute_turns(events, prompts)] == turns


def test_the_given_events_stay_as_they_are() -> None:
    event = Event(type="custom", turn=5)
    attribute_turns([event], ["p"])
    assert event.turn == 5


@pytest.mark.parametrize(
    ("turns", "stimulus_turns", "expected"),
    [
        ([None, 4], 1, [0, 0]),
        ([None, 1, None, 0], 2, [0, 1, 1, 0]),
    ],
)
def test_recorded_turns(turns: list[int | None], stimulus_turns: int, expected: list[int]) -> None:
    events = [Event(type="custom", turn=turn) for turn in turns]
    assert partition_turns(events, stimulus_turns) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([STEP, _user(), STEP, _user("", "a"), _user()], [0, 0, 0, 0, 1]),
        ([_user(), STEP], None),
        ([_user(), _user(), _user()], None),
    ],
)
def test_turns_without_numbers_follow_the_messages(events: list[Event], expected: list[int] | None) -> None:
    assert partition_turns(events, 2) == expected
