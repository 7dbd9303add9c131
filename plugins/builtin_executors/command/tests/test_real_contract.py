"""The executor keeps the contract of executors with a real agent too: Codex, the quickest, with the scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import agents
import pytest

from vally.testing import Case, MockLlm, executor_contract
from vally_executor_command import plugin

pytestmark = pytest.mark.heavy
(RECORD,) = plugin.vally_executors()
ADDRESS: dict[str, str] = {}
OPTIONS = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "{model}", "--"]


def scripted(*lines: str, **provider: str) -> Callable[[Path], dict[str, object]]:
    """Behave as these lines of a script say, whatever the prompt is."""

    def config(directory: Path) -> dict[str, object]:
        prompt = "\n".join(("{prompt}", *(line.replace("{", "{{").replace("}", "}}") for line in lines)))
        program = str(agents.codex().program)
        return {
            "profile": "codex",
            "command": [program, "exec", *OPTIONS, prompt],
            "continueCommand": [program, "exec", "resume", *OPTIONS, "{session_id}", prompt],
            "provider": {"type": "openai", "baseUrl": f"{ADDRESS['url']}/v1", "model": "mock-model", **provider},
        }

    return config


def command(text: str) -> str:
    return f'!tool exec_command {{"cmd": "{text}"}}'


AGENT = {
    "answer": scripted("!say An answer."),
    "writes": scripted(command("echo hi > written.txt"), "!say Written."),
    "until-stopped": scripted(command("sleep 600"), "!say Never."),
    "background": scripted(command("nohup sleep 600 > /dev/null 2>&1 &"), "!say Begun."),
    "secret": scripted("!say An answer.", apiKeyEnv="CONTRACT_API_KEY"),
    "http-429": scripted("!fail 429"),
}


@pytest.fixture(scope="module", autouse=True)
def model() -> Iterator[None]:
    with MockLlm() as server:
        ADDRESS["url"] = server.url
        yield


@pytest.mark.parametrize("case", executor_contract(RECORD, {}, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
