"""Agents that are scripts and confined, whose only way out leads to a model: what they can do with it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confined import CONFINING, MARKS
from confined_project import DONE, HEADER, KEY, ConfinedProject
from containers import podman
from endpoints import FixedEndpoint

from vally.testing import MockLlm

IN_A_SANDBOX = pytest.mark.parametrize("backend", [pytest.param("sandbox", marks=MARKS["sandbox"])])
ASK = """python3 - <<'END'
import json, os, sys, urllib.error, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"]
body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "!say Hello."}}]}}
def ask(path="/v1/messages", key=os.environ["ANTHROPIC_API_KEY"], url=url):
    headers = {{"x-api-key": key, "content-type": "application/json"}}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    except OSError as error:
        print("failed", getattr(error, "reason", error))
{lines}
END
"""


def asking(*lines: str) -> str:
    return ASK.format(lines="\n".join(lines))


@pytest.fixture(params=CONFINING)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(backend: str, tmp_path: Path) -> ConfinedProject:
    if backend == "sandbox":
        return ConfinedProject(tmp_path)
    engine = podman()
    return ConfinedProject(tmp_path, backend, engine.words, engine.env)


def write(project: ConfinedProject, script: str, url: str, *graders: dict[str, Any], **keys: Any) -> None:
    """An eval whose agent is a shell script that is told of its model as Claude Code is."""
    provider = {"type": "anthropic", "baseUrl": url, "apiKeyEnv": "SCENARIO_API_KEY"}
    provider["headers"] = {"X-Team": "${TEAM_HEADER}"}  # type: ignore[assignment]
    chosen = {
        "profile": "claude",
        "command": ["/bin/sh", "-c", "exec sh -s 2>&1"],
        "prompt": "stdin",
        "dialect": "text",
    }
    executor = {"name": "command", "config": {**chosen, "provider": provider}}
    project.write(executor, {"prompt": script, "graders": [DONE, *graders]}, model="m", **keys)


def output(record: dict[str, Any]) -> str:
    assert record["status"] == "success", record.get("errorInfo")
    return str(record["trajectory"]["output"])


def test_a_script_asks_its_model(project: ConfinedProject) -> None:
    with MockLlm(api_key=KEY) as model:
        write(
            project,
            asking("ask()", "ask()", "ask(key='another')", "ask('/../x')") + "env; cat /proc/*/environ",
            model.url,
        )
        record = project.trial()
        requests = model.requests
    told = output(record)
    assert told.count('"text": "Hello."') == 2
    assert "\n401 " in told
    assert "\n404 " in told
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:" in told
    assert [request.headers["x-team"] for request in requests] == [HEADER] * 2
    assert "warnings" not in record
    assert not [secret for secret in (KEY, HEADER) if secret in told + project.kept()]


def test_a_model_that_is_not_there(project: ConfinedProject) -> None:
    with MockLlm() as model:
        url = model.url
    write(project, asking("ask()", "ask()"), url)
    record = project.trial()
    lines = output(record).splitlines()
    assert [line[:4] for line in lines] == ["502 ", "502 "]
    assert json.loads(lines[0][4:])["error"]["message"].startswith("the model endpoint does not answer")
    (warning,) = record["warnings"]
    assert warning.startswith("the model endpoint does not answer")
    assert url in warning


def test_a_model_that_moved(project: ConfinedProject) -> None:
    with FixedEndpoint() as elsewhere:
        elsewhere.give({}, status=307)
        write(project, asking("ask()"), elsewhere.url)
        record = project.trial()
    assert output(record).startswith("400 ")
    assert "redirects" in record["warnings"][0]
    assert len(elsewhere.paths) == 1


def test_no_proxy_stands_in_the_way(project: ConfinedProject) -> None:
    project.env |= {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "no_proxy": "x"}
    with MockLlm(api_key=KEY) as model:
        write(project, asking("ask()") + "env | cut -d= -f1", model.url)
        told = output(project.trial())
    assert "Hello." in told
    assert "proxy" not in told.lower()


@pytest.mark.parametrize(
    ("config", "env", "told"),
    [
        ({"passEnv": ["SCENARIO_API_KEY"]}, {}, "'passEnv' gives the agent 'SCENARIO_API_KEY'"),
        ({"passEnv": ["TEAM_HEADER", "SAME"]}, {}, "'passEnv' gives the agent 'SAME'"),
        ({"env": {"MINE": "x ${SAME}"}}, {}, "'env' gives the agent 'MINE'"),
        ({}, {"MINE": "${SCENARIO_API_KEY}"}, "the environment of stimulus 's' gives the agent 'MINE'"),
    ],
    ids=["name", "value", "config", "stimulus"],
)
@IN_A_SANDBOX
def test_who_hands_the_key_to_the_agent_is_warned(
    project: ConfinedProject, config: dict[str, Any], env: dict[str, str], told: str
) -> None:
    project.env["SAME"] = KEY
    provider = {"type": "anthropic", "baseUrl": "http://127.0.0.1:9", "apiKeyEnv": "SCENARIO_API_KEY"}
    executor = {"profile": "claude", "command": ["/bin/sh"], "dialect": "text", "provider": provider, **config}
    stimulus = {"prompt": "p", "environment": {"env": env}}
    project.write({"name": "command", "config": executor}, stimulus, model="m")
    result = project.run("--dry-run")
    (warning,) = [line for line in result.stderr.splitlines() if "[exposed-credentials]" in line]
    assert warning.startswith(
        f"warning: eval.yaml:1:40: executor 'command': {told} with the credential of its 'provider'"
    )
    assert KEY not in result.stderr
    assert "exposed" not in project.run("--dry-run", "--backend-args", "network=host").stderr


def test_a_program_of_one_s_own_needs_no_model(project: ConfinedProject) -> None:
    command = ["/bin/sh", "-c", "cat /proc/net/dev | tail -n +3 | cut -d: -f1"]
    project.write({"name": "command", "config": {"command": command}}, {"prompt": "hi"})
    assert output(project.trial()).split() == ["lo"]


@IN_A_SANDBOX
def test_graders_cannot_ask_the_agent_s_model(project: ConfinedProject) -> None:
    script = asking("ask()", "open('told', 'w').write(url + ' ' + os.environ['ANTHROPIC_API_KEY'])")
    look = """
import glob, json, os, socket, sys
url, key = open("told").read().split()
socks = [path for path in glob.glob(os.environ["HOME"] + "/../run/*/*") if not os.path.isdir(path)]
asked = []
for path in socks:
    made = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(path))
    try:
        made.connect(os.path.basename(path))
        asked.append(path)
    except OSError:
        pass
print(len(socks), asked)
sys.exit(bool(asked) or not socks)
"""
    grader = {"type": "run-command", "config": {"command": "python3", "args": ["-c", look]}}
    with MockLlm(api_key=KEY) as model:
        write(project, script, model.url, grader)
        record = project.trial()
        assert len(model.requests) == 1
    assert record["gradeResult"]["passed"], record["gradeResult"]


ENDS = {"exit 3": "code 3", "kill -SEGV $$": "SIGSEGV"}


@pytest.mark.parametrize("line", ENDS)
def test_an_agent_ends_as_it_would_elsewhere(line: str, project: ConfinedProject) -> None:
    with MockLlm(api_key=KEY) as model:
        write(project, asking("ask()") + line, model.url)
        record = project.trial()
    told = json.dumps(record)
    assert "Hello." in told
    assert ENDS[line] in told


def test_an_agent_inherits_nothing_of_the_way_out(project: ConfinedProject) -> None:
    with MockLlm(api_key=KEY) as model:
        write(project, "ls /proc/$$/fd | tr '\\n' ' '; grep SigIgn /proc/$$/status", model.url)
        told = output(project.trial())
    assert told.split()[:3] == ["0", "1", "2"]
    assert f"{0:016x}" in told


def test_an_agent_that_is_stopped_can_still_ask(project: ConfinedProject) -> None:
    script = asking(
        "import signal, time",
        "signal.signal(signal.SIGTERM, lambda *_: (ask(), sys.stdout.flush(), os._exit(0)))",
        "print('waiting', flush=True)",
        "time.sleep(60)",
    )
    with MockLlm(api_key=KEY) as model:
        write(project, f"exec {script}", model.url, timeout="2s")
        record = project.trial()
    assert record["trajectory"]["endReason"] == "agent_timeout"
    assert "Hello." in json.dumps(record["trajectory"])


def test_the_way_out_keeps_no_trial_alive(project: ConfinedProject) -> None:
    with MockLlm(api_key=KEY) as model:
        write(project, asking("ask()") + "sleep 600 & echo $!", model.url)
        began = time.monotonic()
        assert "Hello." in output(project.trial())
        assert time.monotonic() - began < 60
    assert list((project.root.parent / "tmp").iterdir()) == []


def test_an_agent_that_ends_the_way_out_harms_nobody_else(project: ConfinedProject) -> None:
    script = asking("ask()") + "kill -9 -1 2>/dev/null; true"
    with MockLlm(api_key=KEY) as model:
        write(project, script, model.url)
        result = project.run("--runs", "3", "--workers", "3")
        assert "Traceback" not in result.stderr
        assert len(model.requests) == 3
