"""Noticing the end of a turn."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from vally_executor_copilot_sdk.waiting import TurnWatch

BEGIN = ("user.message", {}, None)
IDLE = ("session.idle", {}, None)


def watch(*events: tuple[str, dict[str, Any], str | None]) -> TurnWatch:
    made = TurnWatch()
    for kind, data, agent in events:
        made.feed({"type": kind, "data": data, "agentId": agent})
    return made


@pytest.mark.parametrize(
    ("events", "how"),
    [
        ([BEGIN, IDLE], "idle"),
        ([BEGIN, ("session.idle", {"aborted": True}, None)], "aborted"),
        ([BEGIN, ("session.error", {"message": "m"}, None), IDLE], "error"),
        ([IDLE], None),
        ([("session.error", {}, None)], None),
        ([IDLE, BEGIN], None),
        ([IDLE, BEGIN, IDLE], "idle"),
        ([BEGIN, ("session.idle", {}, "sub")], None),
        ([BEGIN, ("session.error", {}, "sub"), IDLE], "idle"),
        ([("user.message", {"source": "skill"}, None), IDLE], None),
        ([("user.message", {"source": "user"}, None), IDLE], "idle"),
        ([("user.message", {}, "sub"), IDLE], None),
        ([("assistant.turn_start", {}, None), IDLE], "idle"),
        ([BEGIN, ("assistant.turn_end", {}, None)], None),
    ],
)
def test_how_a_turn_ends(events: list[Any], how: str | None) -> None:
    assert watch(*events).how == how


def test_each_turn_ends_by_itself() -> None:
    seen = watch(BEGIN, IDLE)
    seen.begin()
    assert seen.how is None
    seen.feed({"type": "session.idle", "data": {}})
    assert seen.how is None
    seen.feed({"type": "user.message", "data": {}})
    seen.feed({"type": "session.error", "data": {"message": "m"}})
    assert (seen.how, seen.error) == ("error", {"message": "m"})


@pytest.mark.anyio
async def test_waiting_for_the_end() -> None:
    seen = TurnWatch()
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            for kind in ("user.message", "session.idle"):
                seen.feed({"type": kind, "data": {}})

        tasks.start_soon(end)
        assert await seen.wait() == "idle"
