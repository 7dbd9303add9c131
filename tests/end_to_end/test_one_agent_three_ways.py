"""One stimulus through three executors that run the same agent: the same tools in the same order, the same answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import agents
import pytest
from programs import records_of

from vally.testing import MockLlm, run_cli

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("agents")]
SCRIPT = """\
!usage 1000 20
!tool create {"path": "${WORK}/notes.txt", "file_text": "one\\n"}
!usage 1100 10
!tool view {"path": "${WORK}/notes.txt"}
!usage 1200 15
!tool bash {"command": "echo two >> notes.txt; cat notes.txt", "description": "add"}
!usage 1300 5
!say First done."""
SECOND = "And?\n!usage 1400 5\n!say Second done."
WAYS = {
    "copilot-sdk": {},
    "command": {"profile": "copilot"},
    "acp": {"profile": "copilot"},
}
KINDS = {"create": "edit"}
"""What the protocol calls a tool that creates a file: it knows kinds, not names."""


def evaluate(root: Path, url: str, executor: str, config: dict[str, Any]) -> dict[str, Any]:
    """Run the eval with one executor and return its only trajectory."""
    root.mkdir()
    workspace = root / "workspace"
    script = SCRIPT.replace("${WORK}", str(workspace / "both"))
    provider = {"type": "openai", "baseUrl": f"{url}/v1", "apiKeyEnv": "MODEL_KEY"}
    graders = [
        {"type": "file-contains", "config": {"path": "notes.txt", "value": "two"}},
        {"type": "diff-contains", "config": {"value": "+one"}, "turn": 0},
        {"type": "output-contains", "config": {"substring": "Second done."}},
        {"type": "completed"},
    ]
    document = {
        "name": "three-ways",
        "defaults": {
            "executor": {"name": executor, "config": {**config, "provider": provider}},
            "model": "scripted-model",
            "timeout": "60s",
        },
        "stimuli": [{"name": "both", "turns": [f"Write.\n{script}", SECOND], "graders": graders}],
    }
    (root / "eval.yaml").write_text(json.dumps(document))
    agent = agents.copilot()
    env = {
        "PATH": f"{agent.program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root),
        "VALLY_CACHE_DIR": str(root / "cache"),
        "COPILOT_CLI_PATH": str(agents.copilot_runtime()),
        "COPILOT_SKIP_CLI_DOWNLOAD": "1",
        "MODEL_KEY": "canary-2e6b-model-key",
    }
    words = ["eval", "-e", "eval.yaml", "--output-dir", "out", "--require-pass", "--workspace", str(workspace)]
    done = run_cli(words, cwd=root, env=env)
    assert done.exit_code == 0, done.stdout + done.stderr
    (trial,) = [record for record in records_of(root) if record["type"] == "trial-result"]
    assert env["MODEL_KEY"] not in json.dumps(trial)
    trajectory: dict[str, Any] = trial["trajectory"]
    return trajectory


def facts(trajectory: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on the way: tools, answers, ends, counts."""
    events = trajectory["events"]
    calls = [event["data"]["toolName"] for event in events if event["type"] == "tool_call"]
    usage = trajectory["metrics"]["tokenUsage"]
    return {
        "tools": [KINDS.get(name, name) for name in calls],
        "turns of tools": [event["turn"] for event in events if event["type"] == "tool_call"],
        "succeeded": [event["data"]["success"] for event in events if event["type"] == "tool_result"],
        "answers": [event["data"]["content"] for event in events if event["type"] == "assistant_message"],
        "output": trajectory["output"],
        "endReason": trajectory["endReason"],
        "agent turns": trajectory["metrics"]["turnCount"],
        "tokens": (usage["inputTokens"], usage["outputTokens"]),
    }


def test_one_agent_three_ways(tmp_path: Path) -> None:
    with MockLlm() as llm:
        found = {name: facts(evaluate(tmp_path / name, llm.url, name, config)) for name, config in WAYS.items()}
    expected = found["copilot-sdk"]
    assert expected["tools"] == ["edit", "view", "bash"]
    assert expected["answers"] == ["First done.", "Second done."]
    assert found == dict.fromkeys(WAYS, expected)
