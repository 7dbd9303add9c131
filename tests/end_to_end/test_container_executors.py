"""Every executor in containers, against the scripted model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import plain_mcp_server
import pytest
from agent_scenarios import AGENTS, MCP_IN_STREAM, call, config, shell, write
from confined_project import DONE, HEADER, HIDDEN, KEY, ConfinedProject
from containers import Engine, podman

from vally.testing import MockLlm, run_cli

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("containers")]
MODEL = {"model": "mock-model"}
MADE = {"type": "file-contains", "config": {"path": "made.txt", "value": "made"}}
ACP: dict[str, Callable[[], agents.Agent]] = {"claude": agents.claude_agent_acp, "opencode": agents.opencode}


@pytest.fixture
def engine() -> Engine:
    return podman()


@pytest.fixture
def project(tmp_path: Path, engine: Engine) -> ConfinedProject:
    return ConfinedProject(tmp_path, "container", engine.words, engine.env)


def look(project: ConfinedProject) -> str:
    """What an agent tries: to read what is hidden, to find a key, and to reach anything but its model."""
    places = f"{project.root}/expected.txt {project.root}/eval.yaml"
    secrets = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -e canary-19[d]2 -e canary-2c0[7]"
    devices = "tail -n +3 /proc/net/dev | cut -d: -f1"
    return (
        f"cat {places}; echo x > {project.root}/x; {secrets} | cut -c1-9 | sed s/canary/leak/; {devices}; echo looked"
    )


def check(record: dict[str, Any], project: ConfinedProject) -> None:
    """The agent worked, and saw nothing it must not see."""
    assert record["status"] == "success", record.get("errorInfo")
    assert record["gradeResult"]["passed"], record["gradeResult"]
    events = json.dumps(record["trajectory"]["events"][1:])
    assert "looked" in events
    for secret in (HIDDEN, KEY, HEADER, "leak-", "eth0"):
        assert secret not in events
    assert not (project.root / "x").exists()


def provider_of(model: MockLlm) -> dict[str, str]:
    return {"type": "openai", "baseUrl": f"{model.url}/v1", "apiKeyEnv": "SCENARIO_API_KEY"}


@pytest.mark.parametrize(
    ("executor", "name"), [*(("command", name) for name in AGENTS), *(("acp", name) for name in ACP)]
)
def test_an_agent_reaches_its_model_and_nothing_else(executor: str, name: str, project: ConfinedProject) -> None:
    agent: agents.Agent = ACP[name]() if executor == "acp" else getattr(agents, name)()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    prompt = "\n".join([write(name, "made.txt", "made"), shell(name, look(project)), "!say Done."])
    with MockLlm(api_key=KEY) as model:
        chosen = {"name": executor, "config": config(name, model.url)}
        project.write(chosen, {"prompt": prompt, "graders": [DONE, MADE]}, **MODEL)
        check(project.trial(), project)
    assert KEY not in project.kept()


def test_an_agent_that_asks_its_model_outside_needs_no_network(project: ConfinedProject) -> None:
    prompt = "\n".join([f"!tool bash {json.dumps({'command': look(project)})}", "!say Done."])
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "openai-tools", "config": {"provider": provider_of(model)}}
        project.write(executor, {"prompt": prompt}, **MODEL)
        check(project.trial("--backend-args", "network=none"), project)


@pytest.mark.parametrize("network", ["none", "model"])
def test_the_copilot_runtime_needs_no_network(network: str, project: ConfinedProject) -> None:
    project.env |= {"COPILOT_CLI_PATH": str(agents.copilot_runtime()), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
    prompt = "\n".join([shell("copilot", look(project)), "!say Done."])
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "copilot-sdk", "config": {"provider": provider_of(model)}}
        project.write(executor, {"prompt": prompt}, **MODEL)
        check(project.trial("--backend-args", f"network={network}"), project)


def test_the_copilot_runtime_with_a_network_of_its_own(project: ConfinedProject) -> None:
    project.env |= {"COPILOT_CLI_PATH": str(agents.copilot_runtime()), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
    prompt = "\n".join([shell("copilot", "echo looked"), "!say Done."])
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "copilot-sdk", "config": {"provider": provider_of(model)}}
        project.write(executor, {"prompt": prompt}, **MODEL)
        check(project.trial("--backend-args", "network=host"), project)


def test_a_server_in_a_directory_of_its_own_is_visible(project: ConfinedProject) -> None:
    agent = agents.copilot()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    tools = project.root / "tools"
    tools.mkdir()
    (tools / "server.py").write_text(Path(plain_mcp_server.__file__).read_text())
    server = {"type": "stdio", "command": sys.executable, "args": ["server.py"], "cwd": "tools"}
    prompt = "\n".join([shell("copilot", look(project)), call(MCP_IN_STREAM["copilot"], a=1, b=2), "!say Done."])
    called = {"type": "tool-calls", "config": {"required": [MCP_IN_STREAM["copilot"]]}}
    with MockLlm(api_key=KEY) as model:
        executor = {"name": "command", "config": config("copilot", model.url)}
        stimulus = {"prompt": prompt, "environment": {"mcpServers": {"calc": server}}, "graders": [DONE, called]}
        project.write(executor, stimulus, **MODEL)
        check(project.trial(), project)


def test_recorded_trials_are_graded_in_a_container(project: ConfinedProject, engine: Engine, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    lines = {"reads": f"grep -q canary {project.root}/expected.txt", "writes": f"! touch {project.root}/x"}
    lines["key"] = 'test -z "$SCENARIO_API_KEY"'
    lines["inside"] = 'test "$container" = podman'
    graders = [{"type": "run-command", "config": {"command": "sh", "args": ["-c", line]}} for line in lines.values()]
    project.write({"name": "mock"}, {"prompt": "hi", "graders": graders})
    assert project.run("--skip-grade", "--workspace", str(kept)).exit_code == 0
    (results,) = (project.root / "out").glob("*/results.jsonl")
    words = ["grade", str(results), "--eval-spec", "eval.yaml", "--backend", "container", *engine.words]
    result = run_cli([*words, "--output", "json", "--require-pass"], cwd=project.root, env=project.env)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert list(Path(project.env["TMPDIR"]).iterdir()) == []


@pytest.fixture
def bare(engine: Engine, tmp_path: Path) -> Iterator[list[str]]:
    """Arguments for an image with nothing but a shell and its tools."""
    context = tmp_path / "image"
    context.mkdir()
    lines = [f"FROM localhost/{engine.image}", "RUN rm -f /usr/bin/python3* /usr/bin/node /usr/bin/perl*"]
    (context / "Dockerfile").write_text("\n".join(lines))
    tag = f"localhost/vally-test-bare:{os.getpid()}"
    engine.run("build", "--quiet", "--tag", tag, str(context))
    yield ["--backend-args", f"image={tag}"]
    engine.run("rmi", "--force", tag)


def test_an_image_without_a_forwarder_is_told(engine: Engine, bare: list[str], tmp_path: Path) -> None:
    project = ConfinedProject(tmp_path, "container", bare, engine.env)
    agent = agents.codex()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"
    with MockLlm(api_key=KEY) as model:
        project.write({"name": "command", "config": config("codex", model.url)}, {"prompt": "hi"}, **MODEL)
        record = project.trial()
    assert record["errorInfo"]["code"] == "unsupported-option"
    assert "has none of python3, node and socat" in record["errorInfo"]["message"]
    assert not model.requests


def test_an_image_with_nothing_but_a_shell_will_do(engine: Engine, bare: list[str], tmp_path: Path) -> None:
    project = ConfinedProject(tmp_path, "container", bare, engine.env)
    lines = {"fails": ("exit 3", 3), "is-killed": ("kill -KILL $$", "SIGKILL")}
    graders = [
        {"type": "run-command", "config": {"command": "sh", "args": ["-c", line]}, "name": name}
        for name, (line, _) in lines.items()
    ]
    made = {"type": "file-contains", "config": {"path": "made.txt", "value": "hello"}}
    command = ["/bin/sh", "-c", "tee made.txt; exit 3"]
    executor = {"name": "command", "config": {"command": command, "successExitCodes": [3]}}
    project.write(executor, {"prompt": "hello", "graders": [DONE, made, *graders]})
    record = project.trial()
    results = {grade["name"]: grade for grade in record["gradeResult"]["details"]}
    assert [grade["passed"] for grade in results.values()] == [True, True, False, False], json.dumps(results)
    for name, (_, how) in lines.items():
        assert str(how) in json.dumps(next(grade for key, grade in results.items() if name in key)), results
