"""Real agents whose only way out of the sandbox leads to their model."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import plain_mcp_server
import pytest
from agent_scenarios import AGENTS, MCP_IN_STREAM, call, config, shell, two_turns, write
from confined_project import DONE, HEADER, HIDDEN, KEY, ConfinedProject

from vally.testing import MockLlm

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
MODEL = {"model": "mock-model"}
MADE = {"type": "file-contains", "config": {"path": "made.txt", "value": "made"}}
HEADERS = {"X-Team": "${TEAM_HEADER}"}
ACP: dict[str, Callable[[], agents.Agent]] = {
    "copilot": agents.copilot,
    "claude": agents.claude_agent_acp,
    "codex": agents.codex_acp,
    "gemini": agents.gemini,
    "opencode": agents.opencode,
}
WITHOUT_HEADERS = {("acp", "gemini")}
"""Who cannot be given headers of a provider."""
LOOK = """
import glob, os, re, socket
words = [bytes(word, "utf-8") for word in WORDS]
def found(path):
    try:
        return [word for word in words if word in open(path, "rb").read()]
    except OSError:
        return []
places = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
for top in (os.path.dirname(os.environ["HOME"]), os.getcwd(), "/dev/shm"):
    places += [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
print("places", len(places) > 20, "secrets", [path for path in places if found(path)])
print("devices", sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]))
for address in (("127.0.0.1", PORT), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, 5)
        print("connected")
    except OSError as error:
        print("refused", error.strerror)
"""


@pytest.fixture
def project(tmp_path: Path) -> ConfinedProject:
    return ConfinedProject(tmp_path)


def write_program(path: Path, model: MockLlm) -> None:
    """Write a program that looks for secrets, of which it holds only parts, and for a way out."""
    parts = [f"{text[:-2]!r} + {text[-2:]!r}" for text in (KEY, HEADER, HIDDEN)]
    path.write_text(LOOK.replace("WORDS", f"[{', '.join(parts)}]").replace("PORT", model.url.rpartition(":")[2]))


def agent_of(executor: str, name: str, project: ConfinedProject) -> None:
    """Install an agent where it is found."""
    agent: agents.Agent = ACP[name]() if executor == "acp" else getattr(agents, name)()
    project.env["PATH"] = f"{agent.program.parent}:{project.env['PATH']}"


def executor_of(executor: str, name: str, url: str, **keys: Any) -> dict[str, Any]:
    chosen = {**config(name, url, **keys)}
    if (executor, name) not in WITHOUT_HEADERS:
        chosen["provider"] = {**chosen["provider"], "headers": HEADERS}
    return {"name": executor, "config": chosen}


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("executor", ["command", "acp"])
def test_an_agent_reaches_its_model_and_nothing_else(executor: str, name: str, project: ConfinedProject) -> None:
    agent_of(executor, name, project)
    program, kept = project.root.parent / "home" / "look.py", project.root.parent / "kept"
    with MockLlm(api_key=KEY) as model:
        write_program(program, model)
        command = f"{sys.executable} {program} > seen.txt 2>&1"
        prompt = "\n".join([write(name, "made.txt", "made"), shell(name, command), "!say Done."])
        project.write(executor_of(executor, name, model.url), {"prompt": prompt, "graders": [DONE, MADE]}, **MODEL)
        record = project.trial("--backend-args", f"ro={program}", "--workspace", str(kept))
        requests = model.requests
    assert record["status"] == "success", record.get("errorInfo")
    assert record["gradeResult"]["passed"], record["gradeResult"]
    assert record["backend"] == "sandbox"
    (seen,) = kept.rglob("seen.txt")
    assert seen.read_text().splitlines() == [
        "places True secrets []",
        "devices ['lo']",
        "refused Connection refused",
        "refused Network is unreachable",
    ]
    # The model answers 401 to another key.
    assert len(requests) >= 3
    if (executor, name) not in WITHOUT_HEADERS:
        assert {request.headers["x-team"] for request in requests} == {HEADER}
    left = project.kept() + "".join(path.read_text("utf-8", "replace") for path in files_in(kept))
    assert not [secret for secret in (KEY, HEADER) if secret in left]


@pytest.mark.parametrize("name", ["copilot", "claude", "codex"])
def test_each_turn_has_its_way(name: str, project: ConfinedProject) -> None:
    agent_of("command", name, project)
    prompts = list(two_turns(name, "made.txt"))
    with MockLlm(api_key=KEY) as model:
        executor = executor_of("command", name, model.url)
        project.write(executor, {"turns": prompts, "graders": [DONE]}, **MODEL)
        record = project.trial()
    assert record["status"] == "success", record.get("errorInfo")
    assert record["trajectory"]["output"].endswith("The second is done.")


def test_a_server_of_the_agent_runs_beside_it(project: ConfinedProject) -> None:
    agent_of("command", "claude", project)
    (project.root / "tools").mkdir()
    prompt = "\n".join([call(MCP_IN_STREAM["claude"], a=1, b=2), "!say Done."])
    called = {"type": "tool-calls", "config": {"required": [MCP_IN_STREAM["claude"]]}}
    server = {"type": "stdio", "command": sys.executable, "args": [plain_mcp_server.__file__], "cwd": "tools"}
    with MockLlm(api_key=KEY) as model:
        stimulus = {"prompt": prompt, "environment": {"mcpServers": {"calc": server}}, "graders": [DONE, called]}
        project.write(executor_of("command", "claude", model.url), stimulus, **MODEL)
        record = project.trial("--backend-args", f"ro={plain_mcp_server.__file__}")
    assert record["status"] == "success", record.get("errorInfo")
    assert record["gradeResult"]["passed"], record["gradeResult"]


def files_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]
