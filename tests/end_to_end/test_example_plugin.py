"""The example package of a stranger gives the same result whichever way it is named."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from environments import UV, check
from plugin_sites import Site

from vally.testing import CliResult, ProjectBuilder, run_cli

pytestmark = pytest.mark.heavy

EXAMPLE = ROOT / "examples" / "vally-grader-example"
PACKAGE = "vally_grader_example"
EVENTS = [
    {"type": "user_message", "data": {"content": "Count the files."}},
    {"type": "tool_call", "data": {"toolName": "bash", "toolCallId": "1", "arguments": {"command": "ls | wc -l"}}},
    {"type": "tool_result", "data": {"toolName": "bash", "toolCallId": "1", "success": False, "result": "denied"}},
    {"type": "tool_call", "data": {"toolName": "glob", "toolCallId": "2", "arguments": {"pattern": "*"}}},
    {"type": "tool_result", "data": {"toolName": "glob", "toolCallId": "2", "success": True, "result": "a b c"}},
    {"type": "assistant_message", "data": {"content": "Three."}},
    {"type": "turn_end", "data": {"turnId": "0"}},
]
GRADERS = [
    {"type": "no-errors"},
    {"type": "no-errors", "config": {"allow_tool_failures": True}},
    {"type": "tool-count", "config": {"min": 1, "max": 2}},
    {"type": "tool-count", "config": {"max": 1}},
]
EXPECTED = [
    ("no-errors #1", False, "1 errors, the first: bash failed"),
    ("no-errors #2", True, "no errors"),
    ("tool-count 1 to 2", True, "2 tool calls (expected 1 to 2)"),
    ("tool-count at most 1", False, "2 tool calls (expected at most 1)"),
]
WAYS = {
    "directory": ["--grader-plugin", str(EXAMPLE)],
    "file": ["--grader-plugin", str(EXAMPLE / "one_file.py")],
    "module": ["--grader-plugin", f"{PACKAGE}.plugin"],
    "distribution": ["--no-plugins", "--grader-plugin", "vally-grader-example"],
    "entry-point": ["--no-plugins", "--grader-plugin", "example"],
    "installed": [],
}
NEEDS_INSTALLATION = {"module", "distribution", "entry-point", "installed"}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path / "project")
    made.file("evals/count/fixtures/count.json", json.dumps({"events": EVENTS, "output": "Three."}))
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    stimulus = {"name": "count", "prompt": "Count the files.", "graders": GRADERS}
    made.eval("count", [stimulus], defaults={"executor": executor})
    return made


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer leaves it, in a directory of `sys.path`."""
    site = Site(tmp_path / "site")
    table = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    site.distribution(table["name"], table["version"], groups=table["entry-points"], requires=table["dependencies"])
    shutil.copytree(EXAMPLE / "src" / PACKAGE, site.path / PACKAGE)
    monkeypatch.syspath_prepend(str(site.path))
    yield
    forget_package()


def forget_package() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def run(project: ProjectBuilder, *words: str) -> CliResult:
    spec = project.root / "evals" / "count" / "eval.yaml"
    return run_cli(["eval", "-e", spec, "--output-dir", "out", "--quiet", *words], cwd=project.root)


def graded(result: CliResult) -> list[tuple[str, bool, str]]:
    (record,) = [record for record in result.records if record["type"] == "trial-result"]
    details: list[dict[str, Any]] = record["gradeResult"]["details"]
    return [(item["name"], item["passed"], item["evidence"]) for item in details]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_result(project: ProjectBuilder, request: pytest.FixtureRequest, way: str) -> None:
    if way in NEEDS_INSTALLATION:
        request.getfixturevalue("installed")
    result = run(project, *WAYS[way])
    assert result.exit_code == 0, result.stderr
    assert graded(result) == EXPECTED


def test_as_a_plugin_of_the_project_file(project: ProjectBuilder) -> None:
    shutil.copytree(EXAMPLE, project.root / "plugin")
    project.project(plugins={"graders": ["./plugin"]})
    assert graded(run(project)) == EXPECTED
    skipped = run(project, "--no-project-plugins")
    assert skipped.exit_code == 1
    assert "unknown grader type 'no-errors' [unknown-grader-type]" in skipped.stderr


def test_without_it_the_keyword_is_unknown(project: ProjectBuilder) -> None:
    result = run(project)
    assert (result.exit_code, result.run_dir) == (1, None)
    assert "unknown grader type 'no-errors' [unknown-grader-type]" in result.stderr


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("words", [["--no-plugins"], ["--no-plugin", "vally_grader_example"]], ids=["all", "one"])
def test_switched_off(project: ProjectBuilder, words: list[str]) -> None:
    result = run(project, *words)
    assert result.exit_code == 1
    assert "unknown grader type 'no-errors'" in result.stderr


@pytest.mark.usefixtures("installed")
def test_the_directory_shadows_the_installed_copy(project: ProjectBuilder) -> None:
    words = ["plugins", "list", "--kind", "grader", "--output", "json", "--grader-plugin", str(EXAMPLE)]
    listed = json.loads(run_cli(words, cwd=project.root).stdout)["plugins"]
    states = {(row["name"], row["source"]): row["status"] for row in listed}
    assert states[("no-errors", str(EXAMPLE))] == "ok"
    assert states[("example", "entry point vally-grader-example")] == "shadowed"


@pytest.mark.usefixtures("installed")
def test_one_file_beside_the_installed_package_is_a_conflict(project: ProjectBuilder) -> None:
    result = run(project, *WAYS["file"])
    assert (result.exit_code, result.run_dir) == (1, None)
    assert "grader 'no-errors' is provided by vally-grader-example 0.1.0 and " in result.stderr
    assert "--no-plugin vally-grader-example" in result.stderr


def test_installed_by_an_installer(project: ProjectBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    check([*UV, "pip", "install", "-q", "--no-deps", "--target", target, EXAMPLE], ROOT)
    monkeypatch.syspath_prepend(str(target))
    assert graded(run(project)) == EXPECTED
    forget_package()
