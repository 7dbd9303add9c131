"""Every example of the documentation loads or runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from checkout import ROOT
from fences import Fence, all_fences, fences, pages, write_files

import vally

USES = {
    # The bad and the good examples of the diagnostics have a test of their own.
    "yaml": {"eval", "project", "graders", "plugin", "bad", "good", "rest", "file"},
    "python": {"run", "file"},
    "json": {"file"},
    "diff": {"file"},
    "markdown": {"file"},
    "toml": {"file"},
    "console": {"run", "bad", "good"},
    "sh": {""},
    "text": {"", "file"},
    "{toctree}": {"glob", ""},
}

PROGRAMS = {"vally": ["vally"], "pytest": ["pytest", "-p", "no:cacheprovider"]}


def by_place(found: list[Fence]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fence", found, ids=str)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_says_how_it_is_checked(page: Path) -> None:
    for fence in fences(page):
        uses = {word.split("=")[0] for word in fence.words} or {""}
        assert uses & USES.get(fence.language, set()), f"{fence}: {fence.language} {fence.words}"


@by_place(all_fences("yaml", "eval"))
def test_an_eval_loads(fence: Fence, tmp_path: Path) -> None:
    write_files(fence.page, tmp_path)
    load(fence.text, tmp_path / (fence.file or "eval.yaml"))


@by_place(all_fences("yaml", "graders"))
def test_a_list_of_graders_loads(fence: Fence, tmp_path: Path) -> None:
    stimulus = {"name": "s", "prompt": "p", "rubric": ["r"], "graders": yaml.safe_load(fence.text)}
    spec = {"name": "e", "defaults": {"executor": "mock"}, "stimuli": [stimulus]}
    load(json.dumps(spec), tmp_path / "eval.yaml")


@by_place(all_fences("yaml", "project"))
def test_a_project_file_loads(fence: Fence, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    path = tmp_path / ".vally.yaml"
    path.write_text(fence.text, encoding="utf-8")
    vally.load_project(path)


@by_place(all_fences("python", "run"))
def test_a_script_runs(fence: Fence, tmp_path: Path) -> None:
    write_files(fence.page, tmp_path)
    script = tmp_path / "example.py"
    script.write_text(fence.text, encoding="utf-8")
    succeed([sys.executable, "-W", "error", script.name], tmp_path)


@pytest.mark.parametrize(
    "page",
    sorted({fence.page for fence in all_fences("console", "run")}),
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_commands_of_a_page_succeed(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    for fence in fences(page):
        if fence.language == "console":
            for line in fence.text.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                succeed([sys.executable, "-m", *PROGRAMS[program], *arguments], tmp_path)


EVALUATING = [
    (fence, line)
    for page in pages()
    for fence in fences(page)
    if fence.language == "sh"
    for line in fence.text.splitlines()
    if "vally eval " in line
]
SELECTING = {"-e", "--eval-spec", "--suite", "--tag", "--resume"}


@pytest.mark.parametrize(("fence", "line"), EVALUATING, ids=[f"{fence}: {line}" for fence, line in EVALUATING])
def test_a_command_says_what_it_evaluates(fence: Fence, line: str) -> None:
    assert SELECTING & set(shlex.split(line)), f"{fence}: 'vally eval' would end with 'nothing selected'"


def load(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    spec = vally.load_eval_spec(path, host=vally.PluginHost())
    assert spec.stimuli


def succeed(argv: list[str], cwd: Path) -> None:
    completed = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == 0, f"{argv}\n{completed.stdout}\n{completed.stderr}"
    assert "Traceback" not in completed.stderr
