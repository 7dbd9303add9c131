"""The five agents of the profiles, as their makers publish them, with a scripted model and no network but loopback."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agents
import anyio
import pytest

from vally import ExecutorError, McpServer, StopSignal, Trajectory
from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio, pytest.mark.xdist_group("agents")]


@dataclass(frozen=True, slots=True)
class Known:
    """A profile, the program for it, its provider, and the names of its tools for a file and a command."""

    install: Callable[[], agents.Agent]
    provider: dict[str, str]
    path: str
    file: tuple[str, str, str]
    command: tuple[str, str]
    names: tuple[str, str]

    def config(self, profile: str, model: MockLlm, **more: Any) -> dict[str, Any]:
        base = model.url + self.path
        return {"profile": profile, "provider": {**self.provider, "baseUrl": base, "apiKeyEnv": "A_KEY"}, **more}

    def write(self, path: Path, text: str) -> str:
        tool, where, what = self.file
        if where == "":
            return f"!tool {tool} " + json.dumps({what: f"printf '{text}' > {path}"})
        return f"!tool {tool} " + json.dumps({where: str(path), what: text})

    def run(self, command: str) -> str:
        tool, key = self.command
        return f"!tool {tool} " + json.dumps({key: command, "description": "do it"})


KNOWN = {
    "copilot": Known(
        agents.copilot,
        {"type": "openai"},
        "/v1",
        ("create", "path", "file_text"),
        ("bash", "command"),
        ("edit", "bash"),
    ),
    "claude": Known(
        agents.claude_agent_acp,
        {"type": "anthropic"},
        "",
        ("Write", "file_path", "content"),
        ("Bash", "command"),
        ("Write", "Bash"),
    ),
    "codex": Known(
        agents.codex_acp,
        {"type": "openai"},
        "/v1",
        ("exec_command", "", "cmd"),
        ("exec_command", "cmd"),
        ("bash", "bash"),
    ),
    "gemini": Known(
        agents.gemini,
        {"type": "openai"},
        "",
        ("write_file", "file_path", "content"),
        ("run_shell_command", "command"),
        ("edit", "bash"),
    ),
    "opencode": Known(
        agents.opencode,
        {"type": "openai"},
        "/v1",
        ("write", "filePath", "content"),
        ("bash", "command"),
        ("edit", "bash"),
    ),
}
MODEL = {"gemini": "gemini-2.5-pro"}
SECRET = "a-very-secret-key-4711"


@pytest.fixture(params=KNOWN)
def profile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    program = KNOWN[request.param].install().program
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    yield request.param


@pytest.fixture
def run(execute: Any, profile: str, model: MockLlm) -> Any:
    """Run prompts with the agent of the profile."""

    async def call(*prompts: str, config: Any = None, **fields: Any) -> Trajectory:
        facts = {"model": MODEL.get(profile, "scripted"), "process_env": {"A_KEY": SECRET}, **fields}
        return await execute(KNOWN[profile].config(profile, model, **(config or {})), *prompts, **facts)

    return call


def calls(trajectory: Trajectory) -> list[str]:
    return [event.data["toolName"] for event in trajectory.events if event.type == "tool_call"]


def results(trajectory: Trajectory) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type == "tool_result"]


async def test_a_file_a_command_a_text_and_a_second_turn(run: Any, profile: str, work_dir: Path) -> None:
    known = KNOWN[profile]
    first = "\n".join([known.write(work_dir / "a.txt", "one"), known.run("cat a.txt; exit 3"), "!say All done."])
    trajectory = await run(f"Write a file.\n{first}", "And now?\n!say Two.")
    assert (work_dir / "a.txt").read_text() == "one"
    assert calls(trajectory) == list(known.names)
    assert (trajectory.output, trajectory.end_reason) == ("Two.", "completed")
    said = [event.data["content"] for event in trajectory.events if event.type == "assistant_message"]
    assert said == ["All done.", "Two."]
    assert trajectory.metrics.turn_count == 4
    assert SECRET not in trajectory.model_dump_json()
    usage = [event.data["inputTokens"] for event in trajectory.events if event.type == "token_usage"]
    assert len(usage) == 2
    assert 0 < usage[1]
    if profile != "gemini":  # tells neither input nor exit code
        assert results(trajectory)[1]["exitCode"] == 3
        assert "one" in results(trajectory)[1]["result"]
    command = next(e for e in trajectory.events if e.type == "tool_call" and e.data["toolName"] == known.names[1])
    assert "cat a.txt; exit 3" in json.dumps([e.data["arguments"] for e in trajectory.events if e.type == "tool_call"])
    assert command.data["title"]
