"""A run whose parts are all local needs no network, not even loopback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT


def without_network() -> list[str]:
    """Words that start a program in an empty network namespace; skips where that is not allowed."""
    words = ["unshare", "--map-root-user", "--net"]
    program = shutil.which("unshare")
    if program is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces cannot be made here")
    return words


COMMANDS = {
    "command": ["eval", "-e", "examples/quickstart/eval.yaml", "--require-pass"],
    "mock": ["eval", "-e", "examples/oracle/eval.yaml", "--executor", "mock"],
}


@pytest.mark.parametrize("executor", COMMANDS)
def test_an_eval_of_local_parts_needs_no_network(executor: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    words = [*without_network(), sys.executable, "-m", "vally", *COMMANDS[executor]]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 errors" in done.stdout
