"""The example with five agents: one table, with whatever agents are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import agents
import pytest
from agent_scenarios import AGENTS
from checkout import ROOT

from vally.testing import run_cli

EXAMPLE = ROOT / "examples" / "agents"


def run(root: Path, programs: Sequence[Path], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the example with these programs, and those of the system, on the search path."""
    (root / "tools").mkdir()
    for name in ("node", "git", "sh", "bash"):
        (root / "tools" / name).symlink_to(_found(name))
    path = os.pathsep.join(map(str, (*[program.parent for program in programs], root / "tools", "/usr/bin", "/bin")))
    env = {"PATH": path, "HOME": str(root), "TMPDIR": str(root), "VALLY_CACHE_DIR": str(root / "cache")}
    command = [sys.executable, str(EXAMPLE / "run.py"), "--output-dir", str(root / "out"), *words]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=240, check=False)


def _found(name: str) -> Path:
    found = [Path(place) / name for place in os.environ["PATH"].split(os.pathsep) if (Path(place) / name).exists()]
    return found[0] if found else Path(name)


def rows(root: Path) -> dict[str, str]:
    """The result of each agent in the table of the report."""
    (report,) = (root / "out").glob("*/report.md")
    lines = [line.strip("| ").split(" | ") for line in report.read_text().splitlines() if line.startswith("| ")]
    return {cells[0].split()[0]: cells[-1] for cells in lines if cells[0].split()[0] in AGENTS and len(cells) == 9}


@pytest.mark.heavy
def test_five_agents_make_one_table(tmp_path: Path) -> None:
    done = run(tmp_path, [getattr(agents, name)().program for name in AGENTS], "--require-pass")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows(tmp_path) == dict.fromkeys(AGENTS, "✅ PASS")


@pytest.mark.heavy
def test_agents_that_are_not_installed_are_left_out(tmp_path: Path) -> None:
    done = run(tmp_path, [agents.codex().program, agents.claude().program], "--require-pass")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gemini is not on PATH and is left out" in done.stderr
    assert rows(tmp_path) == dict.fromkeys(("codex", "claude"), "✅ PASS")


def test_without_any_agent_nothing_is_run(tmp_path: Path) -> None:
    done = run(tmp_path, [])
    assert (done.returncode, done.stdout, (tmp_path / "out").exists()) == (1, "", False)
    assert done.stderr.count("is not on PATH") == 5


@pytest.mark.parametrize("agent", AGENTS)
def test_the_experiment_with_real_models_can_be_planned(agent: str, tmp_path: Path) -> None:
    words = ["experiment", "run", str(EXAMPLE / "real.yaml"), "--variant", agent, "--dry-run"]
    done = run_cli([*words, "--output-dir", str(tmp_path / "out")], cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert agent in done.stdout
