"""`vally eval` with an agent that speaks the Agent Client Protocol and follows a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from checkout import ROOT
from programs import finish, records_of, until

from vally.testing import CliResult, run_cli

FAKE = ROOT / "plugins" / "builtin_executors" / "acp" / "tests" / "fake_agent.py"
SECRET = "canary-8c3f-agent-key"
BUSY = [{"shell": "touch busy; setsid sleep 600 & sleep 600 &"}, {"sleep": 600}]


class Project:
    """A directory with one eval whose agent follows a script."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "VALLY_CACHE_DIR": str(root / "cache"),
            "AGENT_KEY": SECRET,
        }

    def write(self, *prompts: list[dict[str, Any]], stimulus: Any = None, config: Any = None, **defaults: Any) -> None:
        (self.root / "script.json").write_text(json.dumps({"prompts": prompts}))
        command = [sys.executable, str(FAKE), str(self.root / "script.json")]
        executor = {"name": "acp", "config": {"command": command, "passEnv": ["AGENT_KEY"], **(config or {})}}
        mark = {"env": {"MARK_OF_THE_TEST": str(self.root)}}
        one = {"name": "s", "prompt": "hi", "environment": mark, "graders": [{"type": "completed"}], **(stimulus or {})}
        document = {"name": "acp", "defaults": {"executor": executor, "timeout": "60s", **defaults}, "stimuli": [one]}
        (self.root / "eval.yaml").write_text(json.dumps(document))

    def run(self, *words: str) -> CliResult:
        result = run_cli(["eval", "-e", "eval.yaml", "--output-dir", "out", *words], cwd=self.root, env=self.env)
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def trials(self) -> list[dict[str, Any]]:
        return [record for record in records_of(self.root) if record["type"] == "trial-result"]

    def processes(self) -> list[str]:
        """The agents of the project, and what they started."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("MARK_OF_THE_TEST") == str(self.root):
                    found.append(process.name())
            except psutil.Error:
                continue
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_two_turns(project: Project) -> None:
    graders = [
        {"type": "diff-contains", "config": {"value": "+one"}, "turn": 0},
        {"type": "diff-empty", "turn": 1},
        {"type": "output-contains", "config": {"substring": "two"}},
    ]
    steps = [{"shell": "test -e a.txt || echo one > a.txt"}, {"text": "You said ${PROMPT}"}]
    project.write(steps, stimulus={"prompt": None, "turns": ["one", "two"], "graders": graders})
    text = (project.root / "eval.yaml").read_text().replace('"prompt": null, ', "")
    (project.root / "eval.yaml").write_text(text)
    done = project.run("--require-pass")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert project.processes() == []


def test_an_agent_that_crashes_is_tried_again(project: Project) -> None:
    once = project.root / "crashed"
    crash = f"test -e {once} || {{ touch {once}; kill -9 $PPID; sleep 5; }}"
    project.write([{"stderr": "out of memory\n"}, {"shell": crash}, {"text": "Done."}])
    done = project.run("--max-retries", "1", "--require-pass")
    assert done.exit_code == 0, done.stdout
    (trial,) = project.trials()
    assert (trial["status"], trial["attempts"], trial["trajectory"]["output"]) == ("success", 2, "Done.")


def test_an_agent_that_crashes_is_an_error(project: Project) -> None:
    project.write([{"text": "So far."}, {"stderr": "out of memory\n"}, {"shell": "sleep 0.1"}, {"exit": 3}])
    done = project.run()
    assert done.exit_code == 1
    (trial,) = project.trials()
    assert trial["status"] == "error"
    assert "the agent ended with exit code 3: out of memory" in trial["error"]
    assert trial["trajectory"]["output"] == "So far."


def test_a_timeout_is_graded(project: Project) -> None:
    project.write(BUSY, timeout="2s")
    assert project.run().exit_code == 0
    (trial,) = project.trials()
    assert trial["trajectory"]["endReason"] == "agent_timeout"
    assert project.processes() == []


def test_a_key_that_is_handed_on_is_not_recorded(project: Project) -> None:
    steps = [{"shell": 'test "$AGENT_KEY" && touch had-it'}, {"text": f"My key is {SECRET}."}]
    graders = [{"type": "file-exists", "config": {"path": "had-it"}}]
    project.write(steps, stimulus={"graders": graders})
    done = project.run("--require-pass", "--log-level", "debug")
    assert done.exit_code == 0, done.stdout
    (project.root / "script.json").unlink()
    assert SECRET not in done.stdout + done.stderr
    for path in project.root.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    (trial,) = project.trials()
    assert trial["trajectory"]["output"] == "My key is <redacted:AGENT_KEY>."


def test_what_an_agent_cannot_be_told_is_refused_before_the_run(project: Project) -> None:
    project.write([{"text": "Hi."}], model="a-model", reasoning_effort="high")
    done = project.run()
    assert done.exit_code == 1
    for need in ("a model", "a reasoning effort"):
        assert f"executor 'acp' does not support {need} (stimulus 's')" in done.stderr
    assert "  its config must have '{model}' in 'command' or in a value of 'env'\n" in done.stderr
    assert not (project.root / "out").exists()


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_nothing_runs_on_after_the_program(project: Project, how: str) -> None:
    project.write(BUSY)
    command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=project.root, env=project.env, start_new_session=True, **streams)
    until(lambda: project.processes().count("sleep") == 2)
    getattr(process, how)()
    finish(process)
    until(lambda: project.processes() == [])
