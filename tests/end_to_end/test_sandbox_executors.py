"""Every executor in the sandbox, against the scripted model."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import agents
import plain_mcp_server
import pytest
from agent_scenarios import AGENTS, MCP_IN_STREAM, call, config, shell, write
from checkout import ROOT
from confined_project import DONE, HIDDEN, KEY, ConfinedProject

from vally.testing import MockLlm, run_cli

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
FAKE_ACP = ROOT / "plugins" / "builtin_executors" / "acp" / "tests" / "fake_agent.py"
MODEL = {"model": "mock-model"}


@pytest.fixture
def project(tmp_path: Path) -> ConfinedProject:
    return ConfinedProject(tmp_path)


def look(project: ConfinedProject) -> str:
    return f"cat {project.root}/expected.txt {project.root}/eval.yaml; echo x > {project.root}/x; echo looked"


def check(record: dict[str, Any], project: ConfinedProject) -> None:
    """The agent worked, and saw nothing it must not see."""
    assert record["status"] == "success", record.get("errorInfo")
    assert record["gradeResult"]["passed"], record["gradeResult"]
    events = json.dumps(record["trajectory"]["events"])
    assert "looked" in events
    assert HIDDEN not in events
    assert not (project.root / "x").exists()


@pytest.mark.parametrize("name", AGENTS)
def test_agents_by_their_command_lines(name: str, project: ConfinedProject) -> None:
    agent: agents.Agent = getattr(agents, name)()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    prompt = "\n".join([write(name, "made.txt", "made"), shell(name, look(project)), "!say Done."])
    graders = [DONE, {"type": "file-contains", "config": {"path": "made.txt", "value": "made"}}]
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "command", "config": config(name, model.url)}
        project.write(executor, {"prompt": prompt, "graders": graders}, **MODEL)
        check(project.trial("--backend-args", "network=host"), project)
        assert {request.headers["host"] for request in model.requests} == {model.url.removeprefix("http://")}


def test_an_agent_that_asks_its_model_outside_needs_no_network(project: ConfinedProject) -> None:
    prompt = "\n".join([f"!tool bash {json.dumps({'command': look(project) + '; ls /sys/class/net'})}", "!say Done."])
    with MockLlm(api_key=KEY) as model:
        provider = {"type": "openai", "baseUrl": f"{model.url}/v1", "apiKeyEnv": "SCENARIO_API_KEY"}
        project.write({"name": "openai-tools", "config": {"provider": provider}}, {"prompt": prompt}, **MODEL)
        check(project.trial(), project)


def test_an_agent_of_the_protocol(project: ConfinedProject) -> None:
    script = project.root / "script.json"
    steps = [{"shell": f"({look(project)}) > seen.txt 2>&1"}, {"text": "looked"}]
    script.write_text(json.dumps({"prompts": [steps]}))
    command = [sys.executable, str(FAKE_ACP), str(script)]
    seen = {"command": "sh", "args": ["-c", "grep -q looked seen.txt && ! grep canary seen.txt"]}
    graders = [DONE, {"type": "run-command", "config": seen}]
    project.write({"name": "acp", "config": {"command": command}}, {"prompt": "hi", "graders": graders})
    # The checkout may lie in a place that the sandbox has of its own, such as /tmp.
    readable = [word for path in (script, FAKE_ACP) for word in ("--backend-args", f"ro={path}")]
    check(project.trial(*readable), project)


def test_the_copilot_runtime(project: ConfinedProject) -> None:
    project.env |= {"COPILOT_CLI_PATH": str(agents.copilot_runtime()), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
    prompt = "\n".join([shell("copilot", look(project)), "!say Done."])
    with MockLlm() as model:
        provider = {"type": "openai", "baseUrl": f"{model.url}/v1", "apiKeyEnv": "SCENARIO_API_KEY"}
        project.write({"name": "copilot-sdk", "config": {"provider": provider}}, {"prompt": prompt}, **MODEL)
        check(project.trial("--backend-args", "network=host"), project)


def mcp_server(**fields: Any) -> dict[str, Any]:
    return {"type": "stdio", "command": sys.executable, "args": [plain_mcp_server.__file__], **fields}


def test_a_server_in_a_directory_of_its_own_is_visible(project: ConfinedProject) -> None:
    agent = agents.copilot()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    (project.root / "tools").mkdir()
    prompt = "\n".join([shell("copilot", look(project)), call(MCP_IN_STREAM["copilot"], a=1, b=2), "!say Done."])
    called = {"type": "tool-calls", "config": {"required": [MCP_IN_STREAM["copilot"]]}}
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "command", "config": config("copilot", model.url)}
        servers = {"calc": mcp_server(cwd="tools")}
        stimulus = {"prompt": prompt, "environment": {"mcpServers": servers}, "graders": [DONE, called]}
        project.write(executor, stimulus, **MODEL)
        words = ("--backend-args", "network=host", "--backend-args", f"ro={plain_mcp_server.__file__}")
        check(project.trial(*words), project)


def test_a_server_beside_the_spec_is_refused(project: ConfinedProject) -> None:
    agent = agents.copilot()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    executor = {"name": "command", "config": config("copilot", "http://127.0.0.1:9")}
    project.write(executor, {"prompt": "hi", "environment": {"mcpServers": {"calc": mcp_server()}}}, **MODEL)
    record = project.trial("--backend-args", "network=host")
    assert record["errorInfo"]["code"] == "unsupported-option"
    assert f"--backend-args ro={project.root}" in record["errorInfo"]["message"]


def test_recorded_trials_are_graded_in_a_sandbox(project: ConfinedProject, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    lines = {"reads": f"grep -q canary {project.root}/expected.txt", "writes": f"! touch {project.root}/x"}
    lines["key"] = 'test -z "$SCENARIO_API_KEY"'
    graders = [{"type": "run-command", "config": {"command": "sh", "args": ["-c", line]}} for line in lines.values()]
    project.write({"name": "mock"}, {"prompt": "hi", "graders": graders})
    assert project.run("--skip-grade", "--workspace", str(kept)).exit_code == 0
    (results,) = (project.root / "out").glob("*/results.jsonl")
    words = ["grade", str(results), "--eval-spec", "eval.yaml", "--backend", "sandbox", "--output", "json"]
    result = run_cli([*words, "--require-pass"], cwd=project.root, env=project.env)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert list(Path(project.env["TMPDIR"]).iterdir()) == []
