"""The record of a session: what goes into the trajectory, and who hears of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import Event, ExecutorOptions
from vally.testing import executor_options, stimulus
from vally_executor_copilot_sdk import recording
from vally_executor_copilot_sdk.native import Native, prompt_event, session_file
from vally_executor_copilot_sdk.recording import SessionRecord

pytestmark = pytest.mark.anyio


def native(number: int, kind: str, **data: Any) -> Native:
    return {"id": f"e{number}", "type": kind, "timestamp": "2026-01-02T03:04:05.678Z", "data": data}


def call(number: int) -> tuple[Native, Native]:
    call_id = f"c{number}"
    return (
        native(2 * number, "tool.execution_start", toolCallId=call_id, toolName="bash", arguments={}),
        native(
            2 * number + 1, "tool.execution_complete", toolCallId=call_id, success=True, result={"content": call_id}
        ),
    )


class Watched:
    """A record, the file of its session, and what was shown of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.shown: list[Event] = []
        self.heard: list[Native] = []
        options: ExecutorOptions = executor_options(tmp_path, on_event=self.shown.append)
        self.record = SessionRecord(stimulus("x"), options, (self.heard.append,))
        self.record.take(prompt_event("x", []))
        self.path = session_file(tmp_path, options.trial_id)
        self.path.parent.mkdir(parents=True)

    def write(self, *events: Native) -> None:
        self.path.write_text("".join(f"{json.dumps(event)}\n" for event in events))

    def kinds(self) -> list[str]:
        return [event.type for event in self.record.finish("completed").events]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(recording, "FILE_WAIT_S", 0.1)
    return Watched(tmp_path)


async def test_nothing_to_repair(watched: Watched) -> None:
    for event in call(0):
        watched.record.take(event)
    watched.write(*call(0))
    await watched.record.complete(watched.path, wait=True)
    assert watched.record.repair_warning() is None
    assert watched.kinds() == ["user_message", "tool_call", "tool_result"]
    assert [event.type for event in watched.shown] == watched.kinds()


async def test_a_repair_is_not_shown_again_and_later_events_are(watched: Watched) -> None:
    watched.record.take(call(0)[0])
    watched.write(*call(0))
    await watched.record.complete(watched.path, wait=True)
    for event in call(1):
        watched.record.take(event)
    assert watched.kinds() == ["user_message", "tool_call", "tool_result", "tool_call", "tool_result"]
    assert [event.type for event in watched.shown] == ["user_message", "tool_call", "tool_call", "tool_result"]
    assert watched.record.repair_warning() == "1 tool results, 0 usage records were read from the session file"


async def test_metadata_outlives_a_repair(watched: Watched) -> None:
    watched.record.builder.metadata["kept"] = True
    started = watched.record.builder.metadata["startedAt"]
    watched.write(native(9, "assistant.message", content="hello", messageId="m"))
    await watched.record.complete(watched.path, wait=False)
    trajectory = watched.record.finish("completed")
    assert trajectory.output == "hello"
    assert (trajectory.metadata["kept"], trajectory.metadata["startedAt"]) == (True, started)
    assert watched.record.repair_warning() == (
        "0 tool results, 0 usage records, 1 other events were read from the session file"
    )


async def test_repairs_of_several_turns_add_up(watched: Watched) -> None:
    for number in range(3):
        watched.record.take(call(number)[0])
        watched.write(*(event for n in range(number + 1) for event in call(n)))
        await watched.record.complete(watched.path, wait=True)
    assert watched.record.repair_warning() == "3 tool results, 0 usage records were read from the session file"


async def test_a_call_that_never_ended_stays_open(watched: Watched) -> None:
    watched.record.take(call(0)[0])
    watched.write(call(0)[0])
    await watched.record.complete(watched.path, wait=True)
    assert watched.kinds() == ["user_message", "tool_call"]


async def test_the_end_of_the_last_response_is_waited_for(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "FILE_WAIT_S", 30)
    end = native(7, "assistant.turn_end", turnId="0")
    watched.record.take(end)
    watched.write()
    async with anyio.create_task_group() as tasks:

        async def write_later() -> None:
            await anyio.sleep(0.1)
            watched.write(end)

        tasks.start_soon(write_later)
        await watched.record.complete(watched.path, wait=True)
    assert watched.path.read_text()


async def test_nothing_is_added_to_what_was_finished(watched: Watched) -> None:
    watched.record.finish("completed")
    watched.record.on_unreadable(native(5, "assistant.message", content="late"))
    assert watched.heard
    assert watched.kinds() == ["user_message"]
