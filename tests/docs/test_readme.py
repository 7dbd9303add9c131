"""The two commands of the README are what they say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from environments import run
from fences import fences

COMMANDS = [fence.text.strip() for fence in fences(ROOT / "README.md") if fence.language == "sh"]


def test_there_are_two_commands_of_one_line_each() -> None:
    assert len(COMMANDS) == 2
    assert not any("\n" in command for command in COMMANDS)


def test_ci_runs_the_tests_as_the_readme_does() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    command = COMMANDS[1].split(" && ")[-1]
    assert script[script.index("step tests") + 1] == command
    assert script[-1] == f"{command} -m heavy"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that a commit of the working tree would hold."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        target = tmp_path / "vally" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return tmp_path / "vally"


@pytest.mark.heavy
def test_the_first_command_gives_a_green_verdict(clone: Path) -> None:
    completed = run(["bash", "-c", COMMANDS[0]], clone)
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr[-2000:]
    assert "PASSED" in completed.stdout


@pytest.mark.heavy
def test_the_second_command_installs_what_the_tests_need(clone: Path) -> None:
    install, tests = COMMANDS[1].rsplit(" && ", 1)
    # All tests again would take as long as this run; one folder shows that the environment is complete.
    completed = run(["bash", "-c", f"{install} && {tests} kernel/tests/text tests/docs/test_reference.py"], clone)
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-2000:]
    assert " passed" in completed.stdout
