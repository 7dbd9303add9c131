"""`vally doctor` with what comes with vally."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Nothing is fetched or asked far away: what would be is switched off.
LEFT_OUT = ["vally-executor-copilot-sdk", "vally-judge-copilot", "vally-judge-tiny", "vally-backend-ray"]


def doctor(tmp_path: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    environ = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    options = [word for name in LEFT_OUT for word in ("--no-plugin", name)]
    done = subprocess.run(
        [sys.executable, "-m", "vally", "doctor", "--output", "json", *options, *words],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    parts = json.loads(done.stdout)["parts"]
    return done.returncode, {f"{part['kind']} {part['name']}": part for part in parts}


def test_what_needs_nothing_is_ready(tmp_path: Path) -> None:
    code, parts = doctor(tmp_path)
    assert code == 0
    for name in ("executor mock", "backend local"):
        assert parts[name]["status"] == "ready", parts[name]


def test_what_needs_an_address_says_so(tmp_path: Path) -> None:
    _, parts = doctor(tmp_path)
    for name in ("executor openai-tools", "judge openai", "judge anthropic"):
        assert parts[name]["status"] == "needs-config", parts[name]


@pytest.mark.parametrize(("executor", "program"), [("command", "codex"), ("acp", "gemini")])
def test_presets_whose_agent_is_installed(executor: str, program: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / program
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    _, parts = doctor(tmp_path)
    part = parts[f"executor {executor}"]
    assert part["status"] == "ready", part
    assert program in part["detail"].split(";")[0]


def test_an_engine_of_containers_is_told(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    info = '{"Client": {"Version": "9.1"}, "host": {"security": {"rootless": true}}}'
    fake = tmp_path / "bin" / "podman"
    script = "#!/bin/sh\ncase $1 in version | info) echo '{info}' ;; run) {run} ;; *) exit 1 ;; esac\n"
    fake.write_text(script.format(info=info, run="exit 127"))
    fake.chmod(0o755)
    _, parts = doctor(tmp_path)
    for name in ("backend container", "backend podman"):
        told = "podman 9.1, rootless; containers start; a run builds its image from the default Dockerfile first"
        assert (parts[name]["status"], parts[name]["detail"]) == ("ready", told)
    fake.write_text(script.format(info=info, run="echo 'no subuid ranges found' >&2; exit 125"))
    _, parts = doctor(tmp_path)
    for name in ("backend container", "backend podman"):
        told = "podman cannot start a container: no subuid ranges found"
        assert (parts[name]["status"], parts[name]["detail"]) == ("missing", told)
    fake.write_text("#!/bin/sh\necho 'cannot set up namespaces' >&2\nexit 125\n")
    _, parts = doctor(tmp_path)
    part = parts["backend podman"]
    assert (part["status"], part["detail"]) == (
        "missing",
        "podman does not answer: cannot set up namespaces",
    )
    assert "install the package 'podman'" in part["hints"][0]
