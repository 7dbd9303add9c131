"""What needs more of the network than a backend gives to agents is refused before the run, where the eval names it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from vally.testing import run_cli

PROVIDER = {"type": "anthropic", "baseUrl": "http://127.0.0.1:9"}
FAR = {"far": {"type": "http", "url": "http://127.0.0.1:9/x"}}
SSE = {"far": {"type": "sse", "url": "http://127.0.0.1:9/x"}}
LOGIN = "GitHub authentication needs the network of this machine, and the backend gives the agent the network 'model'"
SERVER = "MCP server 'far' of type 'http' needs the network of this machine"
ALONE = "the agent asks its model by itself, and the backend gives it the network 'none'"


def written(root: Path, executor: str, config: dict[str, Any], servers: dict[str, Any]) -> None:
    stimuli = [
        {"name": name, "prompt": "x", "environment": {"mcpServers": servers}, "graders": [{"type": "completed"}]}
        for name in ("a", "b")
    ]
    defaults = {"executor": {"name": executor, "config": config}, "model": "m"}
    (root / "eval.yaml").write_text(json.dumps({"name": "e", "defaults": defaults, "stimuli": stimuli}))


@pytest.mark.parametrize(
    ("executor", "config", "servers", "args", "told"),
    [
        ("copilot-sdk", {}, {}, [], LOGIN),
        ("copilot-sdk", {"provider": PROVIDER}, FAR, [], SERVER),
        ("command", {"profile": "claude"}, {}, [], "profile 'claude' without 'provider' needs"),
        ("command", {"profile": "claude"}, {}, ["network=none"], "profile 'claude' without 'provider' needs"),
        ("command", {"command": ["true", "{mcp_config}"]}, SSE, [], "MCP server 'far' of type 'sse' needs"),
        ("command", {"profile": "claude", "provider": PROVIDER}, {}, ["network=none"], ALONE),
        ("command", {"profile": "claude", "provider": PROVIDER}, FAR, [], SERVER),
        ("acp", {"profile": "codex"}, {}, ["network=none"], "profile 'codex' without 'provider' needs"),
        ("acp", {"profile": "claude", "provider": PROVIDER}, {}, ["network=none"], ALONE),
        ("acp", {"profile": "claude", "provider": PROVIDER}, FAR, [], SERVER),
    ],
)
@pytest.mark.parametrize("backend", ["sandbox", "container"])
def test_it_is_one_error_before_the_run(
    executor: str,
    config: dict[str, Any],
    servers: dict[str, Any],
    args: list[str],
    told: str,
    backend: str,
    tmp_path: Path,
) -> None:
    written(tmp_path, executor, config, servers)
    words = [word for text in args for word in ("--backend-args", text)]
    result = run_cli(["eval", "-e", "eval.yaml", "--backend", backend, *words], cwd=tmp_path)
    assert result.exit_code == 1
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith("error: eval.yaml:1:")
    assert f"executor '{executor}': {told}" in line
    assert line.endswith("[unsupported-option]")
    assert [path.name for path in tmp_path.iterdir()] == ["eval.yaml"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("executor", "config", "args"),
    [
        ("copilot-sdk", {}, ["network=host"]),
        ("copilot-sdk", {"provider": PROVIDER}, ["network=none"]),
        ("command", {"command": ["true"]}, ["network=none"]),
        ("command", {"profile": "claude", "provider": PROVIDER}, []),
        ("mock", {}, []),
    ],
)
def test_what_can_be_had_is_planned(executor: str, config: dict[str, Any], args: list[str], tmp_path: Path) -> None:
    written(tmp_path, executor, config, {})
    words = [word for text in args for word in ("--backend-args", text)]
    result = run_cli(["eval", "-e", "eval.yaml", "--backend", "sandbox", *words, "--dry-run"], cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
