"""`vally eval` records the model calls of Copilot in one project and replays them in another, without any network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import agents
import pytest
from programs import records_of

from vally.testing import MockLlm

pytestmark = pytest.mark.heavy
KEY = "canary-51aa-model-key"
HEADER = "canary-0b2e-header-secret"
PROMPT = (
    "Write it.\n"
    '!tool create {"path": "answer.txt", "file_text": "42\\n"}\n'
    '!tool bash {"command": "cat answer.txt; pwd", "description": "look"}\n'
    "!usage 50 6\n!say It says 42."
)


def no_network() -> list[str]:
    """Words before a command that take the network away, where that is allowed."""
    words = ["unshare", "--map-root-user", "--net"]
    found = shutil.which("unshare")
    allowed = found and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if allowed else []


class Project:
    """A directory with one eval; a command in it knows of nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("home", "tmp"):
            (root / name).mkdir(parents=True)

    def write(self, url: str, prompt: str = PROMPT, **config: Any) -> None:
        headers = {"X-Team-Secret": "${TEAM_SECRET}"}
        provider = {"type": "openai", "baseUrl": f"{url}/v1", "apiKeyEnv": "MODEL_KEY", "headers": headers}
        executor = {"name": "copilot-sdk", "config": {"provider": provider, **config}}
        graders = [{"type": "file-contains", "config": {"path": "answer.txt", "value": "42"}}]
        spec = {
            "name": "taped",
            "defaults": {"executor": executor, "model": "mock-model", "timeout": "60s", "runs": 2},
            "stimuli": [{"name": "writes", "prompt": prompt, "graders": graders}],
        }
        (self.root / "eval.yaml").write_text(json.dumps(spec))

    def run(self, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "VALLY_CACHE_DIR": str(self.root / "cache"),
            "COPILOT_CLI_PATH": str(agents.copilot_runtime()),
            "COPILOT_SKIP_CLI_DOWNLOAD": "1",
            "TEAM_SECRET": HEADER,
            **variables,
        }
        words = [*before, sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out"]
        done = subprocess.run(
            [*words, "--require-pass"], cwd=self.root, env=env, capture_output=True, text=True, timeout=180, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def trials(self) -> list[dict[str, Any]]:
        found = [record for record in records_of(self.root) if record["type"] == "trial-result"]
        return sorted(found, key=lambda record: record["trialIndex"])


def told(record: dict[str, Any]) -> Any:
    """What the agent did, without times and places."""
    trajectory = record["trajectory"]
    calls = [event["data"]["toolName"] for event in trajectory["events"] if event["type"] == "tool_call"]
    return calls, trajectory["output"], trajectory["metrics"]["tokenUsage"]


def test_record_and_replay(tmp_path: Path) -> None:
    first, second = Project(tmp_path / "first"), Project(tmp_path / "a-second-place")
    with MockLlm(api_key=KEY) as llm:
        url = llm.url
        first.write(url, cassette="record")
        recorded = first.run(MODEL_KEY=KEY)
        assert recorded.returncode == 0, recorded.stderr
    tapes = sorted(path.relative_to(first.root).as_posix() for path in first.root.glob("cassettes/**/*.jsonl"))
    assert tapes == [f"cassettes/eval.yaml/writes/mock-model/trial-{index}.jsonl" for index in (0, 1)]
    written = "".join((first.root / path).read_text() for path in tapes)
    assert not any(text in written for text in (KEY, HEADER, str(first.root)))
    shutil.copytree(first.root / "cassettes", second.root / "cassettes")
    second.write(url, cassette="replay", cassetteMatch="strict")
    replayed = second.run(*no_network())
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert [told(record) for record in second.trials()] == [told(record) for record in first.trials()]
    assert [record["trajectory"]["metadata"]["cassette"] for record in second.trials()] == ["replay"] * 2


def test_a_changed_prompt_is_an_error_and_no_failure(tmp_path: Path) -> None:
    project = Project(tmp_path / "first")
    with MockLlm(api_key=KEY) as llm:
        project.write(llm.url, cassette="record")
        assert project.run(MODEL_KEY=KEY).returncode == 0
        shutil.rmtree(project.root / "out")
        project.write(llm.url, prompt=f"Please. {PROMPT}", cassette="replay", cassetteMatch="strict")
        done = project.run()
    assert done.returncode == 1
    for record in project.trials():
        assert record["errorInfo"]["code"] == "cassette-miss"
        assert "exchange 0 of agent 0: the text of the request is another one" in record["errorInfo"]["message"]
