"""`vally eval` with the small agent of its own: the example, limits, secrets, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from checkout import ROOT
from programs import finish, records_of, until

from vally.testing import CliResult, MockLlm, run_cli

KEY = "canary-5b0e-model-key"
HEADER = "canary-41d7-header"
LONG = '!tool bash {"command": "touch busy; sleep 600"}\n!say late'


@pytest.fixture
def llm() -> Iterator[MockLlm]:
    with MockLlm(api_key=KEY) as server:
        yield server


class Project:
    """A directory with one eval."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        headers = {"x-team-secret": "${TEAM_SECRET}"}
        self.provider = {"type": "openai", "baseUrl": f"{url}/v1", "apiKeyEnv": "MODEL_KEY", "headers": headers}
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "VALLY_CACHE_DIR": str(root / "cache"),
            "MODEL_KEY": KEY,
            "TEAM_SECRET": HEADER,
        }

    def write(self, *stimuli: dict[str, Any], config: dict[str, Any] | None = None, **defaults: Any) -> None:
        executor = {"name": "openai-tools", "config": {"provider": self.provider, **(config or {})}}
        document = {
            "name": "tools",
            "defaults": {"executor": executor, "model": "scripted-model", "timeout": "60s", **defaults},
            "stimuli": list(stimuli),
        }
        (self.root / "eval.yaml").write_text(json.dumps(document, indent=1))

    def run(self, *words: str, **env: str) -> CliResult:
        command = ["eval", "-e", "eval.yaml", "--output-dir", "out", *words]
        result = run_cli(command, cwd=self.root, env={**self.env, **env})
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def trials(self) -> list[dict[str, Any]]:
        return [record for record in records_of(self.root) if record["type"] == "trial-result"]


@pytest.fixture
def project(tmp_path: Path, llm: MockLlm) -> Project:
    return Project(tmp_path, llm.url)


def stimulus(prompt: str, **keys: Any) -> dict[str, Any]:
    return {"name": "s", "prompt": prompt, "graders": [{"type": "completed"}], **keys}


def test_the_example(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "examples" / "tool_loop" / "run.py", "--require-pass", "--output-dir", "out"]
    env = {**os.environ, "VALLY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout


def test_a_file_a_command_and_a_text_in_two_turns(project: Project) -> None:
    first = '!tool create {"path": "a.txt", "file_text": "one\\n"}\n!tool bash {"command": "cat a.txt"}\n!say One.'
    turns = [f"Write it.\n{first}", 'Add to it.\n!tool bash {"command": "echo two >> a.txt"}\n!say Two.']
    graders = [
        {"type": "diff-contains", "config": {"value": "+one"}, "turn": 0},
        {"type": "diff-contains", "config": {"value": "+two"}, "turn": 1},
        {"type": "file-contains", "config": {"path": "a.txt", "value": "two"}},
        {"type": "output-contains", "config": {"substring": "Two."}},
    ]
    project.write({"name": "s", "turns": turns, "graders": graders})
    done = project.run("--require-pass")
    assert done.exit_code == 0, done.stdout
    (trial,) = project.trials()
    assert trial["trajectory"]["metrics"]["toolCallBreakdown"] == {"bash": 2, "create": 1}


def test_no_secret_is_anywhere(project: Project, llm: MockLlm) -> None:
    shell = "env; ps -eo args; cat /proc/$PPID/environ | tr '\\\\0' '\\\\n'"
    project.write(stimulus(f'!tool bash {{"command": "{shell}"}}\n!say Done.'), runs=2)
    done = project.run("--require-pass", "--log-level", "debug", "--keep-executor-session-logs")
    assert done.exit_code == 0, done.stdout
    assert llm.requests, "the key opened the door"
    for secret in (KEY, HEADER):
        assert secret not in done.stdout + done.stderr
        for path in project.root.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_an_error_does_not_show_the_key(project: Project) -> None:
    project.write(stimulus(f"hi\n!fail 400 bad key {KEY} and {HEADER}"))
    done = project.run()
    assert done.exit_code == 1
    (trial,) = project.trials()
    assert "provider-error" in json.dumps(trial)
    assert KEY not in done.stdout + done.stderr + json.dumps(trial)


def test_a_variable_that_is_not_set_stops_the_run(project: Project) -> None:
    project.write(stimulus("hi"))
    done = project.run(MODEL_KEY="")
    assert done.exit_code == 1
    assert "executor 'openai-tools': provider.apiKeyEnv: environment variable 'MODEL_KEY' is not set" in done.stderr
    assert "eval.yaml:" in done.stderr
    assert "[executor-credentials]" in done.stderr
    assert not (project.root / "out").exists()


@pytest.mark.parametrize(
    ("keys", "config", "need"),
    [
        ({"environment": {"mcpServers": {"a": {"command": "x"}}}}, {}, "MCP servers"),
        ({"environment": {"env": {"A": "b"}}}, {"tools": ["view"]}, "environment variables"),
        ({"environment": {"skills": ["greeting"]}}, {"tools": ["view"]}, "skills"),
        ({"simulation": {"user": {"persona": "p", "goal": "g"}}}, {}, "a simulated user"),
    ],
)
def test_what_it_cannot_do_is_refused_before_the_run(project: Project, keys: Any, config: Any, need: str) -> None:
    (project.root / "greeting").mkdir()
    (project.root / "greeting" / "SKILL.md").write_text("---\nname: greeting\ndescription: Says hello.\n---\nHello.\n")
    project.write(stimulus("hi", **keys), config=config)
    done = project.run()
    assert f"executor 'openai-tools' does not support {need} (stimulus 's')" in done.stderr, done.stderr
    assert done.exit_code == 1
    assert not (project.root / "out").exists()


def test_a_config_that_is_wrong_is_placed(project: Project) -> None:
    project.write(stimulus("hi"), config={"maxStep": 3, "bashTimeout": "soon"})
    done = project.run()
    assert done.exit_code == 1
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    assert any("eval.yaml:" in line and "unknown key 'maxStep'" in line for line in lines), done.stderr
    assert any("'bashTimeout' must be a duration above zero such as 30s or 1m30s" in line for line in lines), (
        done.stderr
    )


def test_a_failure_that_passes_with_another_attempt(project: Project) -> None:
    # The agent's own prompt names the workspace; without it both attempts are the same conversation.
    prompt = {"mode": "replace", "content": "Do it."}
    config = {"retries": 0, "systemPrompt": prompt}
    project.write(stimulus("hi\n!fail 503 times=1 retry-after=0\n!say Done."), config=config)
    done = project.run("--max-retries", "1", "--require-pass")
    assert done.exit_code == 0, done.stdout
    assert [trial["status"] for trial in project.trials()][-1] == "success"


def marked(prompt: str, project: Project) -> dict[str, Any]:
    """A stimulus whose commands can be known by their environment."""
    return stimulus(prompt, environment={"env": {"MARK_OF_THE_TEST": str(project.root)}})


def test_a_timeout_during_a_command_is_graded(project: Project) -> None:
    project.write(marked(LONG, project), timeout="2s")
    assert project.run().exit_code == 0
    (trial,) = project.trials()
    assert trial["trajectory"]["endReason"] == "agent_timeout"
    assert trial["trajectory"]["metrics"]["toolCallCount"] == 1
    assert sleepers(project.root) == []


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_nothing_runs_on_after_the_program(project: Project, how: str) -> None:
    project.write(marked('!tool bash {"command": "setsid sleep 600 & sleep 600"}\n!say late', project))
    command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=project.root, env=project.env, start_new_session=True, **streams)
    until(lambda: len(sleepers(project.root)) == 2)
    getattr(process, how)()
    finish(process)
    until(lambda: sleepers(project.root) == [])


def sleepers(root: Path) -> list[int]:
    """Commands of the agents of a project that are still asleep."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "sleep" and process.environ().get("MARK_OF_THE_TEST") == str(root):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
