"""Attachments, logs, settings, odd input, and model calls taken by this process; with the real runtime."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import Attachment, ExecutorError, StopSignal, TurnComplete
from vally.testing import MockLlm
from vally_executor_copilot_sdk.executor import CopilotExecutor

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]


def data(trajectory: Any, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type == kind]


async def test_attachments_hide_where_they_come_from(run: Any, llm: MockLlm, tmp_path: Path) -> None:
    path = tmp_path / "secret-place" / "note.txt"
    path.parent.mkdir()
    path.write_text("ATTACHED")
    attachment = Attachment(path=path, name="note.txt", mime_type="text/plain", turn=1)
    trajectory = await run("one\n!say a", "two\n!say b", attachments=(attachment,))
    prompts = data(trajectory, "user_message")
    assert [item.get("attachments") for item in prompts] == [None, ["note.txt"]]
    last = json.dumps(llm.requests[-1].body)
    assert "note.txt" in last
    assert "secret-place" not in last
    assert "note.txt" not in json.dumps(llm.requests[0].body)


async def test_large_output_stays_in_the_trial(run: Any) -> None:
    script = 'x\n!tool bash {"command": "seq 1 20000", "description": "d"}\n!say y'
    cut = await run(script, config={"largeOutputBytes": 1000})
    assert len(data(cut, "tool_result")[0]["result"]) < 5000
    assert str(run.directory / "trial" / "large-output") in data(cut, "tool_result")[0]["result"]
    whole = await run(script, config={"largeOutputBytes": 1_000_000})
    assert "\n20000\n" in data(whole, "tool_result")[0]["result"]


async def test_logs_of_a_session(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "kept" / "events.jsonl"
    raw: list[Any] = []
    logger = logging.Logger("trial", logging.DEBUG)
    trajectory = await run(
        "x\n!say the mock-key-4711 is secret",
        session_log=log,
        on_raw_event=raw.append,
        log=logger,
        redact=lambda text: text.replace("mock-key-4711", "<gone>"),
    )
    assert trajectory.session_path == str(log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["type"] == "session.start"
    assert "<gone>" in log.read_text()
    live = (run.directory / "trial" / "live-events.jsonl").read_text()
    assert "assistant.usage" in live
    for text in (log.read_text(), live):
        assert "mock-key-4711" not in text
    assert {"session.start", "user.message", "assistant.usage"} <= {event["type"] for event in raw}


async def test_settings_of_the_home(run: Any) -> None:
    """A hook of the user shows whether the runtime reads them."""

    def hook(name: str) -> dict[str, Any]:
        command = {"type": "command", "bash": f"touch {run.directory / name}"}
        return {"version": 1, "hooks": {"sessionStart": [command], "userPromptSubmitted": [command]}}

    variable = {"COPILOT_HOME_SETTINGS_JSON": json.dumps(hook("by-variable"))}
    await run("x\n!say y", process_env=variable)
    assert (run.directory / "by-variable").exists()
    (run.directory / "by-variable").unlink()
    await run("x\n!say y", process_env=variable, config={"settings": hook("by-config")})
    assert (run.directory / "by-config").exists()
    assert not (run.directory / "by-variable").exists()
    with pytest.raises(ExecutorError, match="COPILOT_HOME_SETTINGS_JSON must be a JSON object"):
        await run("x", process_env={"COPILOT_HOME_SETTINGS_JSON": "[]"})


async def test_model_calls_can_be_answered_in_this_process(run: Any, provider: Any, llm: MockLlm) -> None:
    import httpx
    from copilot import CopilotRequestHandler

    seen: list[Any] = []

    class Handler(CopilotRequestHandler):
        async def send_request(self, request: httpx.Request, ctx: Any) -> httpx.Response:
            seen.append((ctx.session_id, str(request.url), json.loads(await request.aread())["model"]))
            message = {"role": "assistant", "content": "from this process"}
            usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            facts = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
            return httpx.Response(200, json={**facts, "usage": usage, "choices": [choice]})

    class Answering(CopilotExecutor):
        def request_handler(self, config: Any, options: Any) -> CopilotRequestHandler:
            return Handler()

    run.executor = Answering()
    trajectory = await run("x", config={"provider": provider(baseUrl="http://model.invalid/v1")})
    assert trajectory.output == "from this process"
    assert trajectory.metrics.token_usage.total_tokens == 5
    assert seen == [(trajectory.id, "http://model.invalid/v1/chat/completions", "mock-model")]
    assert not llm.requests


async def test_a_simulated_user_goes_on(run: Any) -> None:
    class User:
        def __init__(self) -> None:
            self.texts = ["more\n!say second", "enough\n!say third"]
            self.seen: list[int] = []

        async def next_message(self, events: Any) -> str | None:
            self.seen.append(len(events))
            return self.texts.pop(0) if self.texts else None

    done: list[TurnComplete] = []

    async def turn_completed(turn: TurnComplete) -> None:
        done.append(turn)

    user = User()
    trajectory = await run("first\n!say first", simulated_user=user, on_turn_complete=turn_completed)
    assert trajectory.output == "third"
    assert [item.final for item in done] == [False, False, True]
    assert user.seen == sorted(set(user.seen))
    assert [event.turn for event in trajectory.events if event.type == "user_message"] == [0, 1, 2]


async def test_a_simulated_user_that_hesitates(run: Any) -> None:
    stop = StopSignal()

    class User:
        async def next_message(self, events: Any) -> str | None:
            stop.set("timeout")
            await anyio.sleep_forever()
            return None

    done: list[TurnComplete] = []

    async def turn_completed(turn: TurnComplete) -> None:
        done.append(turn)

    trajectory = await run("x\n!say y", simulated_user=User(), stop=stop, on_turn_complete=turn_completed)
    assert trajectory.end_reason == "agent_timeout"
    assert done == [TurnComplete(0, True)]


async def test_streamed_fragments_are_not_kept(run: Any) -> None:
    raw: list[Any] = []
    seen: list[Any] = []
    trajectory = await run(
        "x\n!chunk-delay 0.01\n!say one two three four", config={"streaming": True}, on_raw_event=raw.append,
        on_event=seen.append,
    )  # fmt: skip
    assert any(event["type"].endswith("_delta") for event in raw)
    assert trajectory.output == "one two three four"
    assert [event.type for event in trajectory.events] == [
        "user_message", "turn_start", "token_usage", "assistant_message", "turn_end",
    ]  # fmt: skip
    assert [event.type for event in seen] == [event.type for event in trajectory.events]


ODD = {
    "surrogate": "\ud800 lone",
    "nul": "nul \x00 byte",
    "escape": "\x1b[31mred",
    "direction": "\u202e right to left",
    "separator": "\u2028 line",
    "empty": "",
    "long": "x" * 400_000,
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
async def test_odd_prompts(run: Any, text: str) -> None:
    """Whatever the prompt is, it is answered, and stands in the trajectory as it was."""
    prompt = f"{text}\n!say fine"
    trajectory = await run(prompt)
    assert trajectory.output == "fine"
    assert data(trajectory, "user_message") == [{"content": prompt}]


async def test_a_prompt_that_the_model_cannot_hold(run: Any) -> None:
    trajectory = await run("x" * 2_000_000)
    assert trajectory.end_reason == "budget"
    assert any("prompt budget" in item["message"] for item in data(trajectory, "error"))
    again = await run("x\n!say again")
    assert again.output == "again"


async def test_an_odd_workspace(run: Any, make_runs: Any, llm: MockLlm, tmp_path: Path) -> None:
    directory = tmp_path / "it's a \u00fcml\u00e4ut $HOME 'dir'"
    odd = make_runs(directory.resolve(), llm)
    odd.work.mkdir(parents=True)
    offered = odd.skill("greet")
    try:
        script = (
            'x\n!tool skill {"skill": "greet"}\n!tool bash {"command": "pwd; echo 1 > one", "description": "d"}\n!say y'
        )
        trajectory = await odd(script, skills=(offered,))
    finally:
        await odd.executor.shutdown()
    assert trajectory.metadata["skillsLoaded"] == ["greet"]
    assert (odd.work / "one").exists()
