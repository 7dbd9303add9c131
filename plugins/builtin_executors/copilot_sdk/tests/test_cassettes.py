"""Trials that are recorded in one place and replayed in another, with the real runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from endpoints import nobody

from vally import ExecutorError, Trajectory
from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]
DIALECTS = ["completions", "responses", "anthropic"]
SECRET = "mock-key-4711"


def script(work: Path) -> str:
    return (
        "Please do it.\n"
        f"!say Writing to {work}/hello.txt now, as you wanted it.\n"
        f'!also create {{"path": "{work}/hello.txt", "file_text": "hello\\n"}}\n'
        '!tool bash {"command": "pwd; cat hello.txt > copy.txt; exit 3", "description": "look"}\n'
        f"!usage 100 5 40\n!say finished in {work}"
    )


def facts(trajectory: Trajectory, work: Path) -> Any:
    """What must be the same, with the place taken out."""
    kept = [
        (event.type, {key: event.data.get(key) for key in ("toolName", "arguments", "result", "exitCode", "content")})
        for event in trajectory.events
        if event.type in ("tool_call", "tool_result", "assistant_message", "user_message")
    ]
    usage = [
        [event.data[key] for key in ("inputTokens", "outputTokens")]
        for event in trajectory.events
        if event.type == "token_usage"
    ]
    return json.loads(json.dumps([kept, usage, trajectory.output]).replace(str(work), "WORK"))


class Tapes:
    """Records and replays; each trial has a directory of its own, and both have the same cassettes."""

    def __init__(self, root: Path, make_runs: Callable[..., Any]) -> None:
        self.root = root
        self._make_runs = make_runs
        self.warnings: list[str] = []

    async def trial(
        self, place: str, llm: MockLlm, cassette: str, *prompts: str, provider: dict[str, Any], **keys: Any
    ) -> tuple[Trajectory, Path]:
        directory = self.root / place
        (directory / "work").mkdir(parents=True)
        runs = self._make_runs(directory, llm)
        told = [prompt.replace("@WORK", str(runs.work)) for prompt in prompts] or [script(runs.work)]
        config = {
            "provider": provider,
            "cassette": cassette,
            "cassetteDir": str(self.root / "cassettes"),
            **keys,
        }

        def redact(text: str) -> str:
            return text.replace(SECRET, "<redacted>")

        try:
            return await runs(*told, config=config, redact=redact, warn=self.warnings.append), runs.work
        finally:
            await runs.executor.shutdown()

    @property
    def file(self) -> Path:
        (found,) = (self.root / "cassettes").rglob("*.jsonl")
        return found


@pytest.fixture
def tapes(tmp_path: Path, make_runs: Callable[..., Any]) -> Tapes:
    return Tapes(tmp_path.resolve(), make_runs)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_replay_in_another_place(
    tapes: Tapes, provider: Any, llm: MockLlm, dialect: str, streaming: bool
) -> None:
    with MockLlm() as server:
        endpoint = {**provider(dialect), "baseUrl": server.url if dialect == "anthropic" else f"{server.url}/v1"}
        recorded, first = await tapes.trial("first", server, "record", provider=endpoint, streaming=streaming)
    assert recorded.metadata["cassette"] == "record"
    text = tapes.file.read_text()
    assert SECRET not in text
    assert str(tapes.root) not in text
    # That server is gone.
    replayed, second = await tapes.trial(
        "second-place-with-a-longer-name",
        llm,
        "replay",
        provider={**endpoint, "apiKeyEnv": "NOT_SET"},
        streaming=streaming,
        cassetteMatch="strict",
    )
    assert not llm.requests
    assert replayed.metadata["cassette"] == "replay"
    assert facts(replayed, second) == facts(recorded, first)
    assert (second / "copy.txt").read_text() == "hello\n"
    assert replayed.output == f"finished in {second}"


async def test_a_changed_prompt(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    await tapes.trial("first", llm, "record", "Do it.\n!say done", provider=provider())
    changed = "Do it differently.\n!say done"
    with pytest.raises(ExecutorError, match="exchange 0 of agent 0: the text of the request") as caught:
        await tapes.trial("second", llm, "replay", changed, provider=provider(), cassetteMatch="strict")
    assert (caught.value.code, caught.value.retryable) == ("cassette-miss", False)
    trajectory, _ = await tapes.trial("third", llm, "replay", changed, provider=provider())
    assert trajectory.output == "done"
    assert len(llm.requests) == 1
    with pytest.raises(ExecutorError, match=r"exchange 0 of agent 0: tools .*, recorded ") as caught:
        await tapes.trial("fourth", llm, "replay", changed, provider=provider(), excludedTools=["bash"])
    assert caught.value.code == "cassette-miss"


async def test_more_and_fewer_requests_than_recorded(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    await tapes.trial("first", llm, "record", "one\n!say 1", "two\n!say 2", provider=provider())
    await tapes.trial("second", llm, "replay", "one\n!say 1", provider=provider())
    assert [text.partition(" (")[0] for text in tapes.warnings] == ["calls of the cassette that were not asked for: 1"]
    with pytest.raises(ExecutorError, match="exchange 2 of agent 0: nothing more was recorded") as caught:
        await tapes.trial("third", llm, "replay", "one", "two", "three", provider=provider())
    assert caught.value.code == "cassette-miss"
    assert caught.value.trajectory is not None
    assert len(tapes.warnings) == 1


async def test_no_cassette_of_a_trial_that_failed(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    with pytest.raises(ExecutorError, match="401"):
        await tapes.trial("first", llm, "record", "x\n!fail 401", provider=provider())
    assert not list(tapes.root.rglob("*.jsonl")) or not (tapes.root / "cassettes").exists()
    with pytest.raises(ExecutorError, match="there is no cassette") as caught:
        await tapes.trial("second", llm, "replay", "x", provider=provider())
    assert caught.value.code == "cassette-miss"


async def test_sub_agents_and_calls_that_were_tried_again(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    inner = 'inner\n!tool bash {"command": "echo sub > sub.txt", "description": "d"}\n!say inner done'
    task = {"agent_type": "general-purpose", "name": "h", "mode": "sync", "description": "d", "prompt": inner}
    prompt = f"x\n!fail 500 times=1\n!tool task {json.dumps(task)}\n!say outer done"
    recorded, first = await tapes.trial("first", llm, "record", prompt, provider=provider())
    lines = [json.loads(line) for line in tapes.file.read_text().splitlines()][1:]
    assert {line["agent"] for line in lines} == {0, 1}
    assert sorted({line["status"] for line in lines}) == [200, 500]
    asked = len(llm.requests)
    replayed, second = await tapes.trial("second", llm, "replay", prompt, provider=provider(), cassetteMatch="strict")
    assert len(llm.requests) == asked
    assert facts(replayed, second) == facts(recorded, first)
    assert (second / "sub.txt").read_text() == "sub\n"
    assert not tapes.warnings


async def test_a_file_that_is_no_cassette(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    await tapes.trial("first", llm, "record", "x\n!say y", provider=provider())
    tapes.file.write_text(tapes.file.read_text()[:-40])
    with pytest.raises(ExecutorError, match=r"trial-0\.jsonl:2: not JSON: ") as caught:
        await tapes.trial("second", llm, "replay", "x\n!say y", provider=provider())
    assert (caught.value.code, caught.value.retryable) == ("cassette-invalid", False)


async def test_an_endpoint_that_is_not_there_while_recording(tapes: Tapes, provider: Any, llm: MockLlm) -> None:
    with nobody() as url:
        endpoint = {**provider(), "baseUrl": f"{url}/v1"}
        with pytest.raises(ExecutorError) as caught:
            await tapes.trial("first", llm, "record", "x\n!say y", provider=endpoint)
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)
    assert not (tapes.root / "cassettes").exists()
