"""`vally eval` with the real Copilot runtime, against the scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import psutil
import pytest
from programs import finish, records_of, run_dir, until

from vally.testing import CliResult, MockLlm, run_cli

pytestmark = pytest.mark.heavy
KEY = "canary-9c1e-model-key"
TOKEN = "canary-77af-github-token"
LONG = '!tool bash {"command": "touch busy; sleep 600", "description": "d"}\n!say late'


@pytest.fixture
def llm() -> Iterator[MockLlm]:
    with MockLlm() as server:
        yield server


class Project:
    """A directory with one eval, and an environment that finds the runtime."""

    def __init__(self, root: Path, llm: MockLlm) -> None:
        self.root = root
        self.provider = {"type": "openai", "baseUrl": f"{llm.url}/v1", "apiKeyEnv": "MODEL_KEY"}
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "VALLY_CACHE_DIR": str(root / "cache"),
            "COPILOT_CLI_PATH": str(agents.copilot_runtime()),
            "COPILOT_SKIP_CLI_DOWNLOAD": "1",
            "MODEL_KEY": KEY,
            "GH_TOKEN": TOKEN,
        }
        for name in ("home", "tmp"):
            (root / name).mkdir()

    def write(self, *stimuli: dict[str, Any], config: dict[str, Any] | None = None, **defaults: Any) -> None:
        executor = {"name": "copilot-sdk", "config": {"provider": self.provider, **(config or {})}}
        document = {
            "name": "copilot",
            "defaults": {"executor": executor, "model": "mock-model", "timeout": "60s", **defaults},
            "stimuli": list(stimuli),
        }
        (self.root / "eval.yaml").write_text(json.dumps(document))

    def run(self, *words: str) -> CliResult:
        result = run_cli(["eval", "-e", "eval.yaml", "--output-dir", "out", *words], cwd=self.root, env=self.env)
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out", *words]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.root, env=self.env, start_new_session=True, **streams)

    def trials(self) -> list[dict[str, Any]]:
        return [record for record in records_of(self.root) if record["type"] == "trial-result"]

    def processes(self) -> list[str]:
        """Names of the processes that belong to this project: those whose environment names it."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and str(self.root) in "".join(process.environ().values()):
                    found.append(process.name())
            except psutil.Error:
                continue
        return found


@pytest.fixture
def project(tmp_path: Path, llm: MockLlm) -> Iterator[Project]:
    made = Project(tmp_path.resolve(), llm)
    yield made
    assert not made.processes()
    assert not [path for path in (made.root / "tmp").iterdir() if path.name.startswith("vally-run-")]


def stimulus(name: str, prompt: str, *graders: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "prompt": f"{name}\n{prompt}", "graders": list(graders) or [{"type": "completed"}], **fields}


WRITES = '!tool create {"path": "answer.txt", "file_text": "42\\n"}\n!say it says 42'
FORTY_TWO = (
    {"type": "file-contains", "config": {"path": "answer.txt", "value": "42"}},
    {"type": "diff-contains", "config": {"value": "+42"}},
    {"type": "output-contains", "config": {"substring": "42"}},
    {"type": "completed"},
)


def test_a_run_with_several_trials(project: Project, llm: MockLlm) -> None:
    project.write(stimulus("writes", WRITES, *FORTY_TWO), stimulus("also", WRITES, *FORTY_TWO), runs=3)
    result = project.run("--require-pass", "--workers", "3", "--keep-executor-session-logs")
    assert result.exit_code == 0, result.stdout + result.stderr
    trials = project.trials()
    assert len(trials) == 6
    for trial in trials:
        metadata = trial["trajectory"]["metadata"]
        assert (metadata["executor"], metadata["model"]) == ("copilot-sdk", "mock-model")
        assert metadata["sdkVersion"].startswith("1.0.")
        log = run_dir(project.root) / trial["trajectory"]["sessionPath"]
        assert json.loads(log.read_text().splitlines()[0])["type"] == "session.start"
    assert len({trial["trajectory"]["metadata"]["sessionID"] for trial in trials}) == 6
    for path in run_dir(project.root).rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text()
            assert TOKEN not in path.read_text()
    for text in (KEY, TOKEN):
        assert text not in result.stdout + result.stderr
        assert not [request for request in llm.requests if text in json.dumps(request.body)]


def test_a_skill_against_none(project: Project, llm: MockLlm) -> None:
    path = project.root / "skills" / "greeting" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: greeting\ndescription: How to greet\n---\nSay SALVE.\n")
    uses = '!tool skill {"skill": "greeting"}\n!say salve'
    offered = {"environment": {"skills": ["skills/greeting"]}}
    project.write(
        stimulus("with", uses, {"type": "skill-invocation", "config": {"required": ["greeting"]}}, **offered),
        stimulus("without", uses, {"type": "skill-invocation", "config": {"disallowed": ["greeting"]}}),
    )
    result = project.run("--require-pass", "--workers", "1")
    assert result.exit_code == 0, result.stdout + result.stderr
    by_name = {trial["stimulus"]: trial["trajectory"]["metadata"] for trial in project.trials()}
    assert by_name["with"]["skillsLoaded"] == ["greeting"]
    assert by_name["without"]["skillsLoaded"] == []
    requests = {name: [r for r in llm.requests if f"{name}\\n" in json.dumps(r.body)] for name in ("with", "without")}
    assert any("SALVE" in json.dumps(request.body) for request in requests["with"])
    assert not any("SALVE" in json.dumps(request.body) for request in requests["without"])


def test_turns_with_a_diff_each(project: Project) -> None:
    def writes(name: str) -> str:
        return f'{name}\n!tool create {{"path": "{name}.txt", "file_text": "{name}\\n"}}\n!say {name}'

    diffs = [{"type": "diff-contains", "turn": n, "config": {"value": f"+{name}"}} for n, name in enumerate("abc")]
    never = {"type": "diff-not-contains", "turn": 2, "config": {"value": "+a"}}
    several = {"name": "several", "turns": [writes(name) for name in "abc"], "graders": [*diffs, never]}
    project.write(several)
    result = project.run("--require-pass")
    assert result.exit_code == 0, result.stdout + result.stderr


def test_a_crash_is_tried_again(project: Project) -> None:
    marker = project.root / "crashed"
    script = project.root / "crash.py"
    script.write_text(
        f"import os, pathlib\nmarker = pathlib.Path({str(marker)!r})\n"
        "if not marker.exists():\n    marker.touch()\n    os.kill(os.getppid(), 9)\nprint('survived')\n"
    )
    # The runtime is the parent of what its shell becomes.
    prompt = f'!tool bash {{"command": "exec {sys.executable} {script}", "description": "d"}}\n!say done'
    project.write(stimulus("crashes", prompt))
    without = project.run("--max-retries", "0")
    assert without.exit_code == 1
    (trial,) = without.records[:1]
    assert (trial["status"], trial["errorInfo"]["code"], trial["errorInfo"]["retryable"]) == (
        "error",
        "agent-crashed",
        True,
    )
    assert "tool_call" in [event["type"] for event in trial["trajectory"]["events"]]
    marker.unlink()
    again = project.run("--max-retries", "1", "--require-pass", "--output-dir", "again")
    assert again.exit_code == 0, again.stdout + again.stderr


def test_a_failing_mcp_server_is_no_failed_grade(project: Project) -> None:
    words = ["-c", "import sys; sys.exit('no such luck')"]
    servers = {"bad": {"command": sys.executable, "args": words}}
    project.write(stimulus("x", "!say y", environment={"mcpServers": servers}))
    result = project.run("--max-retries", "0")
    assert result.exit_code == 1
    (trial,) = project.trials()
    assert (trial["status"], trial["errorInfo"]["code"]) == ("error", "mcp-server-failed")
    assert "exit code 1" in trial["errorInfo"]["message"]
    assert "no such luck" in trial["errorInfo"]["message"]
    assert not trial.get("gradeResult")


def test_a_timeout_is_graded_and_leaves_nothing(project: Project) -> None:
    wrote = {"type": "file-exists", "config": {"path": "busy"}}
    project.write(stimulus("slow", LONG, wrote), timeout="5s")
    result = project.run("--require-pass")
    assert result.exit_code == 0, result.stdout + result.stderr
    (trial,) = project.trials()
    assert trial["trajectory"]["endReason"] == "agent_timeout"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill-9"])
def test_nothing_is_left_when_the_program_ends(project: Project, number: int) -> None:
    project.write(stimulus("a", LONG), stimulus("b", LONG))
    process = project.start("--workers", "2")
    until(lambda: project.processes().count("sleep") == 2)
    process.send_signal(number)
    code, _, _ = finish(process)
    assert code == (130 if number == signal.SIGINT else -signal.SIGKILL)
    until(lambda: not project.processes(), seconds=15)
    if number == signal.SIGKILL:
        # The next run removes what a killed one left; the guardian took the processes.
        for path in (project.root / "tmp").glob("vally-run-*"):
            assert not (path / "copilot-0" / "session-store.db-journal").exists()
            path.rename(project.root / path.name)


def test_what_is_missing_is_told_before_the_run(project: Project) -> None:
    project.write(stimulus("x", "!say y"))
    assert project.run("--preflight", "--require-pass").exit_code == 0
    project.provider = {}
    project.write(stimulus("x", "!say y"), config={"provider": None})
    del project.env["GH_TOKEN"]
    login = project.run("--preflight")
    assert login.exit_code == 1
    assert "not signed in to GitHub Copilot; set COPILOT_GITHUB_TOKEN" in login.stderr
    project.env["COPILOT_CLI_PATH"] = str(project.root / "gone")
    project.env["PATH"] = "/nonexistent"
    gone = project.run("--preflight")
    assert gone.exit_code == 1
    assert "run 'python -m vally_executor_copilot_sdk provision' or set COPILOT_CLI_PATH" in gone.stderr


def test_mistakes_in_the_config(project: Project) -> None:
    project.write(stimulus("x", "!say y"), config={"permission": "workspace"})
    result = project.run()
    assert result.exit_code == 1
    assert "unknown key 'permission'" in result.stderr
    project.write(stimulus("x", "!say y"), config={"cliPath": "./nowhere"})
    assert "does not exist" in project.run().stderr
    project.env.pop("MODEL_KEY")
    project.write(stimulus("x", "!say y"))
    assert "environment variable 'MODEL_KEY' is not set" in project.run().stderr
