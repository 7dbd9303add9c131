"""The mock executor: rows MK of the plugin chapter, and every key of a fixture."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    Attachment,
    Event,
    ExecutorError,
    PluginHost,
    StopSignal,
    Trajectory,
    TrialSkipped,
    TurnComplete,
    load_trajectory,
    segment,
)

pytestmark = pytest.mark.anyio
Play = Callable[..., Awaitable[Trajectory]]
Write = Callable[..., Path]


class Turns:
    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []

    async def __call__(self, turn: TurnComplete) -> None:
        self.seen.append((turn.turn, turn.final))


def said(trajectory: Trajectory) -> list[str]:
    return [event.data["content"] for event in trajectory.events if event.type == "assistant_message"]


def kinds(trajectory: Trajectory) -> list[str]:
    return [event.type for event in trajectory.events]


async def case_mk_1(play: Play, write: Write, work_dir: Path) -> None:
    trajectory = await play("hi")
    assert (trajectory.output, trajectory.end_reason) == ("hi", "completed")
    assert trajectory.metrics is not None
    assert trajectory.metrics.turn_count == 1
    assert kinds(trajectory) == ["user_message", "turn_start", "assistant_message", "turn_end"]


async def case_mk_2(play: Play, write: Write, work_dir: Path) -> None:
    write({"files": {"a.txt": "1\n", "new/dir/b.txt": "2"}, "output": "ok"})
    assert (await play()).output == "ok"
    assert (work_dir / "a.txt").read_bytes() == b"1\n"
    assert (work_dir / "new/dir/b.txt").read_text() == "2"


async def case_mk_3(play: Play, write: Write, work_dir: Path) -> None:
    write({"error": {"message": "down", "code": "provider-error", "retryable": True}})
    for _ in range(2):
        with pytest.raises(ExecutorError, match="down") as caught:
            await play()
        assert (caught.value.code, caught.value.retryable) == ("provider-error", True)


async def case_mk_4(play: Play, write: Write, work_dir: Path) -> None:
    turns = Turns()
    write({"turns": [{"output": "a"}]})
    trajectory = await play("one", "two", on_turn_complete=turns)
    assert said(trajectory) == ["a", "a"]
    assert turns.seen == [(0, False), (1, True)]
    assert [event.turn for event in trajectory.events] == [0, 0, 0, 0, 1, 1, 1, 1]


async def case_mk_5(play: Play, write: Write, work_dir: Path) -> None:
    write({"delayMs": 60000, "output": "late"})
    began = time.monotonic()
    trajectory = await play(timeout_ms=1000)
    assert (trajectory.end_reason, trajectory.output) == ("agent_timeout", "")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "case",
    [case_mk_1, case_mk_2, case_mk_3, case_mk_4, case_mk_5],
    ids=["MK-1", "MK-2", "MK-3", "MK-4", "MK-5"],
)
async def test_rows(case: Callable[..., Awaitable[None]], play: Play, write_fixture: Write, work_dir: Path) -> None:
    await case(play, write_fixture, work_dir)


async def test_without_a_fixture_every_turn_echoes_its_own_prompt(play: Play) -> None:
    turns = Turns()
    trajectory = await play("a", "b", "c", on_turn_complete=turns)
    assert said(trajectory) == ["a", "b", "c"]
    assert trajectory.output == "c"
    assert turns.seen == [(0, False), (1, False), (2, True)]


async def test_scripted_turns_in_order_the_last_repeats(play: Play, write_fixture: Write, work_dir: Path) -> None:
    write_fixture({"turns": [{"output": "1", "files": {"n": "1"}}, {"output": "2", "files": {"n": "2"}}]})
    seen: list[str] = []

    async def look(_: TurnComplete) -> None:
        seen.append((work_dir / "n").read_text())

    assert said(await play("a", "b", "c", on_turn_complete=look)) == ["1", "2", "2"]
    assert seen == ["1", "2", "2"]


async def test_events_are_taken_over_as_they_are(play: Play, write_fixture: Write) -> None:
    events = [
        {"type": "user_message", "data": {"content": "hi"}, "timestamp": "2026-01-01T00:00:00.000Z"},
        {"type": "turn_start", "data": {"turnId": "7"}},
        {"type": "tool_call", "data": {"toolName": "bash", "toolCallId": "c", "arguments": {"command": "ls"}}},
        {"type": "tool_call", "data": {"toolName": "bash", "toolCallId": "c"}},
        {"type": "tool_result", "data": {"toolName": "bash", "toolCallId": "lost", "success": False, "result": "no"}},
        {"type": "assistant_message", "agentId": "x", "data": {"content": "inner"}},
        {"type": "assistant_message", "data": {"content": "done"}},
        {"type": "my_own", "data": {"k": [1]}},
    ]
    write_fixture({"events": events, "endReason": "budget", "metadata": {"model": "m", "mine": 1}})
    trajectory = await play()
    assert [(event.type, event.data) for event in trajectory.events] == [(e["type"], e["data"]) for e in events]
    assert (trajectory.output, trajectory.end_reason) == ("done", "budget")
    assert (trajectory.metadata["model"], trajectory.metadata["mine"]) == ("m", 1)
    assert (trajectory.metadata["executor"], trajectory.metadata["sessionID"]) == ("mock", "trial")
    assert trajectory.metrics is not None
    assert (trajectory.metrics.tool_call_count, trajectory.metrics.turn_count) == (2, 0)


async def test_events_without_a_prompt_get_the_one_that_was_sent(play: Play, write_fixture: Write) -> None:
    write_fixture({"events": [{"type": "assistant_message", "data": {"content": "x"}}], "output": "other"})
    trajectory = await play("hi")
    assert kinds(trajectory) == ["user_message", "assistant_message"]
    assert trajectory.output == "other"


async def test_a_recorded_trajectory_is_a_fixture(play: Play, write_fixture: Write) -> None:
    recorded = await play("a", "b")
    metrics = {"turnCount": 9, "wallTimeMs": 1234, "mine": 5}
    write_fixture({**json.loads(recorded.model_dump_json(by_alias=True)), "diff": "not ours", "metrics": metrics})
    turns = Turns()
    replayed = await play("a", "b", on_turn_complete=turns)
    assert [event.model_dump() for event in replayed.events] == [event.model_dump() for event in recorded.events]
    assert turns.seen == [(0, False), (1, True)]
    assert replayed.diff is None
    assert replayed.metrics is not None
    assert (replayed.metrics.turn_count, replayed.metrics.wall_time_ms) == (2, 1234)
    assert replayed.metrics.model_extra == {"mine": 5}


async def test_a_recorded_session_without_turn_numbers_is_cut_by_its_prompts(play: Play, write_fixture: Write) -> None:
    events = [
        {"type": kind, "data": {"content": text}}
        for kind, text in (
            ("user_message", "a"),
            ("assistant_message", "1"),
            ("user_message", "b"),
            ("assistant_message", "2"),
        )
    ]
    write_fixture({"events": events, "files": {"f": "x"}})
    trajectory = await play("a", "b")
    assert [event.turn for event in trajectory.events] == [0, 0, 1, 1]
    assert kinds(trajectory) == [event["type"] for event in events]


async def test_a_file_is_deleted_by_null(play: Play, write_fixture: Write, work_dir: Path) -> None:
    (work_dir / "tree").mkdir()
    (work_dir / "tree" / "leaf").touch()
    (work_dir / "file").touch()
    write_fixture({"files": {"tree": None, "file": None, "never-there": None}})
    trajectory = await play()
    assert sorted(path.name for path in work_dir.iterdir()) == [".mock-executor"]
    assert (trajectory.output, kinds(trajectory)) == ("", ["user_message", "turn_start", "turn_end"])


@pytest.mark.parametrize("name", ["../out", "/tmp/out-of-workspace", "link/out", "onward", ".", "a\0b", ""])
async def test_a_path_outside_the_workspace_is_refused(
    play: Play, write_fixture: Write, work_dir: Path, tmp_path: Path, name: str
) -> None:
    (work_dir / "link").symlink_to(tmp_path)
    (work_dir / "onward").symlink_to(tmp_path / "target")
    write_fixture({"files": {name: "x"}})
    with pytest.raises(ExecutorError, match="malformed fixture") as caught:
        await play()
    assert (caught.value.code, caught.value.retryable) == ("agent-protocol", False)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "target").exists()


async def test_an_error_carries_its_details_and_what_happened_before(play: Play, write_fixture: Write) -> None:
    error = {"message": "m", "code": "provider-rate-limit", "retryable": True, "retryAfterMs": 5, "details": {"a": 1}}
    write_fixture({"error": error, "output": "half"})
    with pytest.raises(ExecutorError) as caught:
        await play()
    assert (caught.value.retry_after_ms, caught.value.details) == (5, {"a": 1})
    assert caught.value.trajectory is not None
    assert (caught.value.trajectory.output, caught.value.trajectory.end_reason) == ("half", "error")


@pytest.mark.parametrize(("skip", "message"), [("not here", "not here"), (True, "skipped by the fixture")])
async def test_a_trial_can_be_skipped(play: Play, write_fixture: Write, skip: object, message: str) -> None:
    write_fixture({"skip": skip})
    with pytest.raises(TrialSkipped) as caught:
        await play()
    assert caught.value.message == message


async def test_a_stop_during_a_delay_returns_what_there_is(play: Play, write_fixture: Write) -> None:
    write_fixture({"turns": [{"output": "first"}, {"delayMs": 60000}]})
    stop = StopSignal()

    async def hurry(_: TurnComplete) -> None:
        stop.set("timeout")

    trajectory = await play("a", "b", stop=stop, on_turn_complete=hurry)
    assert (trajectory.output, trajectory.end_reason) == ("first", "agent_timeout")


async def test_a_cancelled_trial_is_skipped_with_its_trajectory(play: Play, write_fixture: Write) -> None:
    write_fixture({"delayMs": 60000})
    stop = StopSignal()
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            await anyio.sleep(0.1)
            stop.set("cancelled")

        tasks.start_soon(cancel)
        with pytest.raises(TrialSkipped) as caught:
            await play(stop=stop)
    assert caught.value.trajectory is not None
    assert caught.value.trajectory.end_reason == "cancelled"


async def test_the_soft_limit_ends_a_delay(play: Play, write_fixture: Write) -> None:
    write_fixture({"delayMs": 60000})
    trajectory = await play(max_agent_duration_ms=100)
    assert trajectory.end_reason == "agent_timeout"


async def test_a_short_delay_is_only_a_wait(play: Play, write_fixture: Write) -> None:
    write_fixture({"delayMs": 50, "output": "x"})
    began = time.monotonic()
    assert (await play(max_agent_duration_ms=60_000)).end_reason == "completed"
    assert time.monotonic() - began >= 0.05


MALFORMED = {
    "syntax": ("{", "malformed fixture 's.json': "),
    "no-object": ([], "must be an object"),
    "events": ({"events": [{"data": {}}]}, "/events/0/type must be a string"),
    "no-list": ({"events": {}}, "/events must be a list"),
    "output": ({"output": 3}, "/output"),
    "files": ({"files": {"a": 3}}, "/files/a"),
    "turns": ({"turns": []}, "/turns"),
    "turn": ({"turns": [3]}, "/turns/0 must be an object"),
    "turn-events": ({"turns": [{}, {"events": 3}]}, "/turns/1/events must be a list"),
    "delay": ({"delayMs": -1}, "/delayMs"),
    "error": ({"error": {"message": "m"}}, "/error/code"),
    "error-key": ({"error": {"message": "m", "code": "c", "retry": True}}, "/error/retry"),
}


@pytest.mark.parametrize(("content", "problem"), MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_fixture_is_named(play: Play, write_fixture: Write, content: object, problem: str) -> None:
    write_fixture(content)
    with pytest.raises(ExecutorError) as caught:
        await play()
    assert caught.value.code == "agent-protocol"
    assert problem in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("writes json: twice", "writes json: twice"),
        ("writes json: twice", "writes-json-twice"),
        ("a/b", "a-b"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 300, segment("x" * 300)),
    ],
    ids=["name", "segment", "slash", "upwards", "long"],
)
async def test_a_fixture_is_found_by_name_or_segment(play: Play, write_fixture: Write, name: str, stem: str) -> None:
    write_fixture({"output": "found"}, stem)
    assert (await play(name=name)).output == "found"


async def test_a_fixture_outside_its_directory_is_none(play: Play, write_fixture: Write, work_dir: Path) -> None:
    write_fixture({"output": "outside"}, directory=work_dir)
    (work_dir / ".mock-executor").mkdir()
    assert (await play("hi", name="../s")).output == "hi"


async def test_the_own_directory_comes_first(play: Play, write_fixture: Write, tmp_path: Path) -> None:
    write_fixture({"output": "workspace"})
    write_fixture({"output": "own"}, directory=tmp_path / "fixtures")
    assert (await play(config={"fixtureDir": "fixtures"})).output == "own"
    assert (await play()).output == "workspace"


async def test_a_missing_own_directory_is_an_error(play: Play) -> None:
    with pytest.raises(ExecutorError, match="fixtureDir 'nowhere' is not a directory") as caught:
        await play(config={"fixtureDir": "nowhere"})
    assert caught.value.code == "executor-config"


async def test_strict_wants_a_fixture(play: Play, write_fixture: Write) -> None:
    with pytest.raises(ExecutorError, match="no fixture for stimulus 's'") as caught:
        await play(config={"strict": True})
    assert caught.value.code == "executor-config"
    write_fixture({"output": "x"})
    assert (await play(config={"strict": True})).output == "x"


async def test_attachments_model_and_effort_are_recorded(play: Play) -> None:
    attachment = Attachment(path=Path("/x.png"), name="x.png", mime_type="image/png", turn=1)
    trajectory = await play("a", "b", attachments=(attachment,), model="m", reasoning_effort="low")
    sent = [event.data.get("attachments") for event in trajectory.events if event.type == "user_message"]
    assert sent == [None, ["x.png"]]
    assert (trajectory.metadata["model"], trajectory.metadata["reasoningEffort"]) == ("m", "low")


async def test_a_simulated_user_goes_on_until_it_has_nothing_to_say(play: Play) -> None:
    class User:
        def __init__(self) -> None:
            self.messages = ["more", "still more"]
            self.saw: list[int] = []

        async def next_message(self, events: Any) -> str | None:
            self.saw.append(len(events))
            return self.messages.pop(0) if self.messages else None

    user, turns = User(), Turns()
    trajectory = await play("a", simulated_user=user, on_turn_complete=turns)
    assert said(trajectory) == ["a", "more", "still more"]
    assert turns.seen == [(0, False), (1, False), (2, True)]
    assert user.saw == [4, 8, 12]
    assert {event.turn for event in trajectory.events} == {0, 1, 2}


async def test_the_session_log_has_the_events(play: Play, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "events.jsonl"
    trajectory = await play(session_log=path)
    assert trajectory.session_path == str(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [Event.model_validate(line).type for line in lines] == kinds(trajectory)


def test_the_record_is_found_by_its_entry_point() -> None:
    host = PluginHost()
    record = host.require("executor", "mock")
    assert host.parse_config(record, {"fixtureDir": "x", "strict": True}).strict is True
    assert callable(host.create(record).execute)
    assert load_trajectory({}).events == []
