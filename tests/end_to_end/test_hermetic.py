"""Copilot in a sandbox without network: its model calls leave by way of `vally`, and nothing else does."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from agent_scenarios import shell
from confined_project import HEADER, HIDDEN, KEY, ConfinedProject

from vally.testing import MockLlm

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
TOKEN = "canary-9a33-github-token"
CREATE = '!tool create {"path": "made.txt", "file_text": "made\\n"}'
GRADERS = [{"type": "completed"}, {"type": "file-contains", "config": {"path": "made.txt", "value": "made"}}]


class Project(ConfinedProject):
    """A project with something to hide, and an eval of one trial."""

    def __init__(self, root: Path) -> None:
        secrets = {"MODEL_KEY": KEY, "TEAM_SECRET": HEADER, "GH_TOKEN": TOKEN}
        runtime = {"COPILOT_CLI_PATH": str(agents.copilot_runtime()), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
        super().__init__(root, env={**secrets, **runtime})

    def set_up(self, url: str | None, *lines: str, environment: dict[str, Any] | None = None, **config: Any) -> None:
        headers = {"X-Team": "${TEAM_SECRET}"}
        provider = {"type": "openai", "baseUrl": f"{url}/v1", "apiKeyEnv": "MODEL_KEY", "headers": headers}
        own = config if url is None else {"provider": provider, **config}
        defaults = {"executor": {"name": "copilot-sdk", "config": own}, "model": "mock-model", "timeout": "60s"}
        stimulus = {"name": "s", "prompt": "\n".join(["Do it.", *lines]), "graders": GRADERS}
        stimulus |= {} if environment is None else {"environment": environment}
        (self.root / "eval.yaml").write_text(json.dumps({"name": "e", "defaults": defaults, "stimuli": [stimulus]}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def llm() -> Iterator[MockLlm]:
    with MockLlm(api_key=KEY) as server:
        yield server


def results(record: dict[str, Any]) -> str:
    """What the agent's tools told it."""
    assert record["status"] == "success", record.get("errorInfo")
    assert record["gradeResult"]["passed"], record["gradeResult"]
    found = [event["data"] for event in record["trajectory"]["events"] if event["type"] == "tool_result"]
    return "\n".join(str(data["result"]) for data in found)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_a_trial_without_network(project: Project, llm: MockLlm, streaming: bool) -> None:
    project.set_up(llm.url, CREATE, shell("copilot", "cat made.txt; echo looked"), "!say Done.", streaming=streaming)
    record = project.trial()
    assert "made\nlooked" in results(record)
    assert record["backend"] == "sandbox"
    assert record["trajectory"]["output"] == "Done."
    assert len(llm.requests) == 3
    assert {request.headers["x-team"] for request in llm.requests} == {HEADER}


def test_no_address_but_loopback(project: Project, llm: MockLlm) -> None:
    port = llm.url.rpartition(":")[2]
    look = f"""
import socket
print("devices", sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]))
print("routes", len(open("/proc/net/route").read().splitlines()) - 1)
for address in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, 5)
        print("connected")
    except OSError as error:
        print("refused", error.strerror)
"""
    project.set_up(llm.url, CREATE, shell("copilot", f"{sys.executable} -c '{look}'"), "!say Done.")
    told = results(project.trial())
    assert "devices ['lo']" in told
    assert "routes 0" in told
    assert "refused Connection refused" in told
    assert "refused Network is unreachable" in told
    assert "connected" not in told


def test_writing_and_reading_stay_inside(project: Project, llm: MockLlm) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    lines = [
        shell("copilot", f"echo x > {outside}/shell.txt; echo x > /usr/shell.txt; echo x > {project.root}/shell.txt"),
        f'!tool create {{"path": "{outside}/tool.txt", "file_text": "x"}}',
        '!tool create {"path": "/usr/tool.txt", "file_text": "x"}',
        shell(
            "copilot", f"cat {project.root}/eval.yaml {project.root}/expected.txt; ls -a {project.root}; echo looked"
        ),
        f'!tool view {{"path": "{project.root}/expected.txt"}}',
        shell("copilot", f"grep -rs canary-5d4[4] / --include=expected.txt --exclude-dir=proc {project.root}; true"),
    ]
    project.set_up(llm.url, CREATE, *lines, "!say Done.")
    told = results(project.trial())
    assert "looked" in told
    assert HIDDEN not in told
    assert "file-contains" not in told
    assert list(outside.iterdir()) == []
    assert not any(Path("/usr", name).exists() for name in ("shell.txt", "tool.txt"))
    assert sorted(path.name for path in project.root.iterdir()) == ["eval.yaml", "expected.txt", "out"]


def test_the_key_is_nowhere(project: Project, llm: MockLlm) -> None:
    address = llm.url.removeprefix("http://")
    # What is looked for must not stand in the command itself, which is an argument, too.
    wanted = "|".join(f"{text[:-1]}[{text[-1]}]" for text in (KEY, HEADER, TOKEN, address))
    places = "/proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    command = (
        f"cat {places} | tr '\\0' '\\n' > seen; grep -c . seen; grep -aE '{wanted}' seen;"
        f" grep -rasE '{wanted}' ~ $TMPDIR $COPILOT_HOME . ; rm seen; env | grep -E '{wanted}'; echo looked"
    )
    project.set_up(llm.url, CREATE, shell("copilot", command), "!say Done.")
    told = results(project.trial())
    assert re.search(r"^[1-9]\d+\n", told, re.MULTILINE), "no environment could be read"
    assert "looked" in told
    for secret in (KEY, HEADER, TOKEN, address):
        assert secret not in told
    kept = project.kept()
    for secret in (KEY, HEADER, TOKEN):
        assert secret not in kept


def test_a_cassette_is_recorded_and_replayed(tmp_path: Path, llm: MockLlm) -> None:
    first, second = Project(tmp_path / "first"), Project(tmp_path / "a-second-place")
    lines = [CREATE, shell("copilot", "cat made.txt; pwd"), "!say Done."]
    first.set_up(llm.url, *lines, cassette="record")
    recorded = results(first.trial())
    (tape,) = (first.root / "cassettes").rglob("*.jsonl")
    assert not any(text in tape.read_text() for text in (KEY, HEADER, str(first.root)))
    shutil.copytree(first.root / "cassettes", second.root / "cassettes")
    del second.env["MODEL_KEY"]
    second.set_up("http://127.0.0.1:9", *lines, cassette="replay", cassetteMatch="strict")
    asked = len(llm.requests)
    record = second.trial("--backend-args", "network=none")
    assert "made\n" in results(record)
    assert "made\n" in recorded
    assert record["trajectory"]["metadata"]["cassette"] == "replay"
    assert len(llm.requests) == asked


def test_a_replay_names_its_provider_too(project: Project) -> None:
    project.set_up(None, CREATE, cassette="replay")
    result = project.run("--backend-args", "network=none")
    assert result.exit_code == 1
    assert "executor 'copilot-sdk': 'cassette: replay' needs 'provider' [invalid-executor-config]" in result.stderr
    assert not (project.root / "out").exists()
