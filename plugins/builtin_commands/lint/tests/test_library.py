"""`vally.lint`: what the command finds, for programs."""

from __future__ import annotations

from typing import Any

import pytest

import vally
from vally import Diagnostic, PluginError, PluginHost, VallyError
from vally.testing import ProjectBuilder, plugin_host
from vally_command_lint.plugin import vally_commands

SPEC = "stimuli:\n  - {name: a, prompt: p, graders: [{type: says-pattern, config: {pattern: 'a*'}}]}\n"


@pytest.fixture
def host(stand_ins: tuple[Any, ...]) -> PluginHost:
    return plugin_host(*stand_ins, *vally_commands())


def found(report: vally.ValidationReport) -> list[tuple[str, str, str | None, int | None, int | None]]:
    return [(item.code, item.level, item.file, item.line, item.column) for item in report.diagnostics]


def test_a_spec_with_checks_of_the_plugin(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("evals/eval.yaml", f"area: x\n{SPEC}")
    report = vally.lint(specs=["evals"], cwd=project.root, host=host)
    assert report.valid
    assert found(report) == [
        ("foreign-key", "warning", "evals/eval.yaml", 1, 1),
        ("cannot-fail", "warning", "evals/eval.yaml", 3, 5),
        ("pattern-matches-any-text", "warning", "evals/eval.yaml", 3, 75),
    ]
    assert all(type(item) is Diagnostic for item in report.diagnostics)


def test_levels(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("evals/eval.yaml", f"area: x\n{SPEC}")
    strict = vally.lint(specs=["evals"], strict=True, severities={"foreign-key": "off"}, cwd=project.root, host=host)
    assert not strict.valid
    assert {item.level for item in strict.diagnostics} == {"error"}
    assert {item.code for item in strict.diagnostics} == {"cannot-fail", "pattern-matches-any-text"}


def test_skills_and_the_whole_project(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("skills/log-reader/SKILL.md", "---\nname: log\ndescription: Reads.\n---\nSee https://other.org\n")
    project.file("domains.txt", "example.org\n")
    project.file("x.experiment.yaml", "name: x\n")
    of_skills = vally.lint(["skills"], known_domains="domains.txt", cwd=project.root, host=host)
    assert [item.code for item in of_skills.diagnostics] == ["name-format", "external-domain"]
    whole = vally.lint(whole_project=True, cwd=project.root, host=host)
    assert {item.file for item in whole.diagnostics} == {"skills/log-reader/SKILL.md", "x.experiment.yaml"}


def test_parameters_and_variables(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("eval.yaml", f"name: ${{NAME}}\nenvironment: {{env: {{A: '${{TOKEN}}'}}}}\n{SPEC}")
    arguments: dict[str, Any] = {"specs": ["eval.yaml"], "cwd": project.root, "host": host}
    assert [item.line for item in vally.lint(**arguments).diagnostics if item.code == "unresolved-parameter"] == [1, 2]
    filled = vally.lint(**arguments, params={"NAME": "n"}, environ={"TOKEN": "t"})
    assert "unresolved-parameter" not in {item.code for item in filled.diagnostics}


def test_nothing_to_check(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("skills/notes.txt", "")
    with pytest.raises(VallyError, match="nothing to lint under skills"):
        vally.lint(["skills"], cwd=project.root, host=host)


def test_an_unknown_code(project: ProjectBuilder, host: PluginHost) -> None:
    with pytest.raises(VallyError, match="no check or code named 'forein-key'") as caught:
        vally.lint(specs=["x"], severities={"forein-key": "off"}, cwd=project.root, host=host)
    assert caught.value.hints == ("did you mean 'foreign-key'?",)


def test_without_the_plugin(project: ProjectBuilder) -> None:
    with pytest.raises(PluginError, match="no command named 'lint'"):
        vally.lint(cwd=project.root, host=PluginHost.from_objects())


@pytest.mark.parametrize(
    ("text", "valid"), [("environments: {x: {git: {type: wortree}}}\n", False), ("foo: 1\n", True)]
)
def test_a_project_file_with_findings(text: str, valid: bool, project: ProjectBuilder, host: PluginHost) -> None:
    project.file(".vally.yaml", text)
    project.file("eval.yaml", SPEC.replace("a*", "a"))
    report = vally.lint(specs=["eval.yaml"], cwd=project.root, host=host)
    assert report.valid is valid
    assert [item.file for item in report.diagnostics] == [".vally.yaml"]
    assert not vally.lint(specs=["eval.yaml"], strict=True, cwd=project.root, host=host).valid
    off = {item.code: "off" for item in report.diagnostics}
    assert vally.lint(specs=["eval.yaml"], severities=off, cwd=project.root, host=host).valid  # type: ignore[arg-type]


def test_rows_that_a_finding_comes_from(project: ProjectBuilder, host: PluginHost) -> None:
    project.file("rows.csv", "q\nx\n  \n")
    project.file("eval.yaml", "stimuli_from: {file: rows.csv, template: {prompt: '${row.q}', graders: []}}\n")
    report = vally.lint(specs=["eval.yaml"], cwd=project.root, host=host)
    wrong = next(item for item in report.diagnostics if item.level == "error")
    assert [(place.file, place.line) for place in wrong.related] == [("rows.csv", 3)]
