"""Nothing of the user's own account gets into a trial, and no secret gets out; with the real runtime."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from vally import LocalProcessRunner
from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

HOSTILE = "HOSTILE-CONTENT"
SKILL = f"---\nname: hostile\ndescription: {HOSTILE}\n---\n{HOSTILE}\n"
HOOKS = {"sessionStart": [{"type": "command", "bash": "exit 1"}]}
SERVERS = {"hostile": {"type": "local", "command": "false", "tools": ["*"]}}
HOME_FILES = {
    ".copilot/settings.json": json.dumps({"model": HOSTILE, "hooks": HOOKS}),
    ".copilot/config.json": json.dumps({"model": HOSTILE, "trusted_folders": ["/"]}),
    ".copilot/mcp-config.json": json.dumps({"mcpServers": SERVERS}),
    ".copilot/copilot-instructions.md": HOSTILE,
    ".copilot/AGENTS.md": HOSTILE,
    ".copilot/agents/hostile.agent.md": f"---\nname: hostile\ndescription: {HOSTILE}\n---\n{HOSTILE}\n",
    ".copilot/skills/hostile/SKILL.md": SKILL,
    ".agents/skills/hostile/SKILL.md": SKILL,
    ".claude/CLAUDE.md": HOSTILE,
    ".claude/settings.json": json.dumps({"model": HOSTILE}),
    ".claude/skills/hostile/SKILL.md": SKILL,
    ".codex/config.toml": f'model = "{HOSTILE}"\n',
    ".codex/AGENTS.md": HOSTILE,
    ".gitconfig": f"[user]\nname = {HOSTILE}\nemail = {HOSTILE}\n[alias]\nstatus = !false\n",
    ".config/github-copilot/apps.json": json.dumps({"github.com": {"oauth_token": HOSTILE}}),
    "instructions/AGENTS.md": HOSTILE,
    "instructions/.github/instructions/all.instructions.md": f"---\napplyTo: '**'\n---\n{HOSTILE}\n",
}
# The runtime makes its cache at a moment of its own.
COMMAND = "git config --get user.name; git status --short; ls -a ~ | grep -v cache; true"
SCRIPT = f'x\n!tool bash {{"command": "{COMMAND}", "description": "d"}}\n!tool skill {{"skill": "hostile"}}\n!say y'


def normal(llm: MockLlm, directory: Path) -> list[str]:
    """The requests without what differs from run to run: dates, ids and paths."""
    texts = []
    for request in llm.requests:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        text = json.dumps([request.path, headers, request.body], sort_keys=True).replace(str(directory), "<dir>")
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)", "<date>", text)
        texts.append(re.sub(r"call_[0-9a-f]{16}", "<call>", text))
    return texts


def lay_out(directory: Path, *, hostile: bool) -> dict[str, str]:
    """A user's home, and the environment that points to it."""
    home = directory / "the-users-home"
    home.mkdir()
    env = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    if not hostile:
        return env
    for name, text in HOME_FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name in ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".github/skills/hostile/SKILL.md"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(SKILL if name.endswith("SKILL.md") else HOSTILE)
    return {
        **env,
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_CUSTOM_INSTRUCTIONS_DIRS": str(home / "instructions"),
        "COPILOT_MODEL": HOSTILE,
        "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1",
        "GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS": HOSTILE,
    }


def sharing(directory: Path) -> dict[str, Any]:
    """Options of a trial whose runtime process may serve others."""
    shared_dir = directory / "shared"
    shared_dir.mkdir()
    runner = LocalProcessRunner(f"run-{uuid.uuid4()}", {}, cwd=shared_dir, owned_dirs=[shared_dir])
    return {"shared_runner": runner, "shared_dir": shared_dir}


@pytest.mark.parametrize("how", ["own", "shared"])
@pytest.mark.parametrize("place", ["plain", "repository"])
async def test_configuration_of_the_user_does_not_leak_in(
    tmp_path_factory: pytest.TempPathFactory, make_runs: Any, how: str, place: str
) -> None:
    """The requests of a trial are the same, whatever the account around it holds."""
    seen = []
    for hostile in (False, True):
        directory = tmp_path_factory.mktemp("account").resolve()
        env = lay_out(directory, hostile=hostile)
        (directory / "work").mkdir()
        if place == "repository":
            subprocess.run(["git", "init", "-q", str(directory / "work")], check=True)
        with MockLlm() as llm:
            run = make_runs(directory, llm)
            trajectory = await run(SCRIPT, process_env=env, **(sharing(directory) if how == "shared" else {}))
            await run.executor.shutdown()
            assert HOSTILE not in trajectory.model_dump_json()
            seen.append(normal(llm, directory))
            if hostile:
                assert HOSTILE not in json.dumps(seen[-1])
    clean, hostile_one = seen
    assert len(clean) == 3
    for one, other in zip(hostile_one, clean, strict=True):
        at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        assert one[at:] == other[at:], f"{one[max(0, at - 200) : at + 200]}\n{other[max(0, at - 200) : at + 200]}"


async def test_the_hostile_files_are_effective(run: Any, llm: MockLlm) -> None:
    """Where the user asks for the own home, its content is there; else the tests above would prove nothing."""
    env = lay_out(run.directory, hostile=True)
    asked = {**env, "EVALUATE_USE_HOST_COPILOT_HOME": "1"}
    await run(SCRIPT, process_env=asked, config={"home": "host"})
    assert HOSTILE in json.dumps([request.body for request in llm.requests])


async def test_secrets_are_nowhere(run: Any, provider: Any, llm: MockLlm, tmp_path: Path) -> None:
    canaries = {
        "MOCK_API_KEY": "canary-of-the-key",
        "GH_TOKEN": "canary-of-gh-token",
        "GITHUB_TOKEN": "canary-of-github-token",
        "COPILOT_GITHUB_TOKEN": "canary-of-copilot-token",
        "GITHUB_COPILOT_API_TOKEN": "canary-of-the-judge",
        "AWS_SECRET_ACCESS_KEY": "canary-of-aws",
    }
    header = "canary-of-the-header"
    command = (
        "env; ps -eo args ww; git config --list; grep -ras canary ~ $COPILOT_HOME .;"
        " cat /proc/[0-9]*/environ 2>/dev/null | tr '\\\\0' '\\\\n' | grep -a canary; true"
    )
    log = tmp_path / "events.jsonl"
    records: list[str] = []
    logger = logging.Logger("trial", logging.DEBUG)
    logger.addHandler(Listener(records))
    # The pattern of the search itself is no secret, nor is it in what the search finds.
    script = f'x\n!tool bash {{"command": {json.dumps(command)}, "description": "d"}}\n!say y'.replace(
        "canary", "ca[n]ary"
    )
    trajectory = await run(
        script,
        config={"provider": provider(headers={"X-Own": header}), "largeOutputBytes": 5_000_000},
        process_env=canaries,
        session_log=log,
        log=logger,
        **sharing(run.directory),
    )
    assert any(event.type == "tool_result" and event.data["success"] for event in trajectory.events)
    assert llm.requests[-1].headers["x-own"] == header
    places = {"trajectory": trajectory.model_dump_json(), "log": log.read_text(), "logged": "\n".join(records)}
    for path in run.directory.rglob("*"):
        if path.is_file():
            places[str(path)] = path.read_bytes().decode("utf-8", "replace")
    for value in (*canaries.values(), header):
        found = [place for place, text in places.items() if value in text]
        assert not found, value
    await run.executor.shutdown()


@pytest.mark.parametrize("what", ["ln -s {other} $f", "mkfifo $f", "ln -s {folder} ${{f%/*}}"])
async def test_what_an_agent_leaves_for_its_session_is_not_followed(run: Any, tmp_path: Path, what: str) -> None:
    other = tmp_path / "folder" / "events.jsonl"
    other.parent.mkdir()
    other.write_text('{"type": "assistant.message", "data": {"content": "of somebody else"}}\n')
    left = what.format(other=other, folder=other.parent)
    command = f"f=$(find $COPILOT_HOME -name events.jsonl); rm -r ${{f%/*}}; mkdir -p ${{f%/*}}; {left}; echo left"
    if "f%/*" in what:
        command = command.replace("mkdir -p ${f%/*}; ", "")
    log = tmp_path / "log.jsonl"
    prompt = f'x\n!tool bash {{"command": {json.dumps(command)}, "description": "d"}}\n!say Done.'
    trajectory = await run(prompt, session_log=log)
    assert "left" in trajectory.model_dump_json()
    assert "somebody else" not in trajectory.model_dump_json()
    assert not log.exists() or "somebody else" not in log.read_text()


class Listener(logging.Handler):
    def __init__(self, records: list[str]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record.getMessage())
