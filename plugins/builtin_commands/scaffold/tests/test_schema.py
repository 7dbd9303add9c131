"""`vally schema`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from vally import GraderSpec
from vally.testing import CliResult, ProjectBuilder

Run = Callable[..., CliResult]

PLUGIN = """\
from pydantic import Field
from vally import Config, GraderInput, GraderResult, grader

class LoudConfig(Config):
    volume: int = Field(ge=1, description="how loud")

@grader("loud", config=LoudConfig)
def loud(input: GraderInput[LoudConfig]) -> GraderResult:
    \"\"\"The answer is loud.\"\"\"
    return GraderResult.verdict(True, "loud")
"""


def types(schema: dict[str, Any]) -> list[str]:
    return list(schema["$defs"]["grader-type"]["anyOf"][0]["enum"])


@pytest.mark.parametrize("kind", ["eval", "config", "experiment", "results"])
def test_stdout_holds_the_schema_and_nothing_else(run: Run, kind: str) -> None:
    result = run("schema", kind)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["$id"] == f"https://vally.example/schema/{kind}/0.json"
    assert result.stdout.endswith("}\n")
    assert run("schema", kind).stdout == result.stdout


def test_evals_are_the_default(run: Run) -> None:
    assert run("schema").stdout == run("schema", "eval").stdout


def test_the_installed_graders(run: Run, graders: tuple[GraderSpec, ...]) -> None:
    names = {record.name for record in graders}
    assert names <= set(types(json.loads(run("schema").stdout)))


def test_a_plugin_of_the_command_line(project: ProjectBuilder, run: Run) -> None:
    project.file("loud.py", PLUGIN)
    schema = json.loads(run("schema", "--grader-plugin", "./loud.py").stdout)
    assert "loud" in types(schema)
    assert schema["$defs"]["loud-config"]["anyOf"][0]["properties"]["volume"]["description"] == "how loud"
    assert "loud" not in types(json.loads(run("schema").stdout))


def test_plugins_of_the_project(project: ProjectBuilder, run: Run) -> None:
    project.file("loud.py", PLUGIN)
    project.project(plugins={"graders": ["./loud.py"]})
    assert "loud" in types(json.loads(run("schema").stdout))
    for words in (["--no-project-plugins"], ["--no-config"]):
        assert "loud" not in types(json.loads(run("schema", *words).stdout))


def test_a_file(project: ProjectBuilder, run: Run) -> None:
    result = run("schema", "config", "--output-file", "schemas/config.json")
    assert (result.exit_code, result.stdout) == (0, "Created schemas/config.json\n")
    assert (project.root / "schemas/config.json").read_text() == run("schema", "config").stdout


def test_a_plugin_that_fails(project: ProjectBuilder, run: Run) -> None:
    project.file("broken.py", "raise RuntimeError('no luck')\n")
    result = run("schema", "--grader-plugin", "./broken.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: plugin './broken.py': RuntimeError: no luck")


def test_a_broken_project_file(project: ProjectBuilder, run: Run) -> None:
    project.file(".vally.yaml", "paths: 3\n")
    result = run("schema")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: .vally.yaml:1:8: paths must be a mapping, got 3 [invalid-type]\n"


def test_an_unknown_kind(run: Run) -> None:
    result = run("schema", "suite")
    assert result.exit_code == 2
    assert "'eval', 'config', 'experiment', 'results'" in result.stderr
