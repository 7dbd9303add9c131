"""The workflows of the guide: their commands run, and what they promise is what a service finds."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from fences import fences, write_files

from vally.testing import run_cli

PAGE = ROOT / "docs" / "guide" / "ci.md"


def workflow(name: str) -> Any:
    (text,) = [fence.text for fence in fences(PAGE) if fence.file == name]
    return yaml.safe_load(text)


def github_commands() -> list[str]:
    steps = workflow(".github/workflows/evals.yml")["jobs"]["evals"]["steps"]
    return [step["run"] for step in steps if step.get("run", "").startswith("vally ")]


def gitlab_commands() -> list[str]:
    return [line for line in workflow(".gitlab-ci.yml")["evals"]["script"] if line.startswith("vally ")]


@pytest.mark.parametrize("command", [*github_commands(), *gitlab_commands()])
def test_the_commands_run(command: str, tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    environ = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    result = run_cli(shlex.split(command)[1:], cwd=tmp_path, env=environ)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert (tmp_path / "summary.md").is_file()


def test_the_reports_are_where_gitlab_looks(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    (command,) = gitlab_commands()
    run_cli(shlex.split(command)[1:], cwd=tmp_path, env={"CI": "true"})
    pattern = workflow(".gitlab-ci.yml")["evals"]["artifacts"]["reports"]["junit"]
    assert len(list(tmp_path.glob(pattern))) == 1


def test_the_switches_that_the_guide_names_exist(tmp_path: Path) -> None:
    shown = run_cli(["eval", "--help"], cwd=tmp_path).stdout
    named = set(re.findall(r"`(--[a-z-]+)", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 6
    assert not [option for option in named if option not in shown]
