"""A project to check, graders and executors that stand in for installed ones, and short ways to lint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from pydantic import Field

from vally import (
    Config,
    ExecutorSpec,
    GraderResult,
    GraderSpec,
    NegatedFlag,
    Pattern,
    find_project,
    matches_every_text,
)
from vally.testing import CliResult, ProjectBuilder, plugin_host, run_cli
from vally_command_lint.findings import Finding, LintReport
from vally_command_lint.linting import LintOptions, lint


class ContainsConfig(Config):
    text: str
    negate: bool = False


class NotContainsConfig(ContainsConfig):
    negate: NegatedFlag = True


class MatchesConfig(Config):
    pattern: Pattern
    negate: bool = False


class Call(Config):
    name: Pattern
    command: Pattern | None = None


class CallsConfig(Config):
    required: list[str | Call] = Field(default_factory=list)
    disallowed: list[str | Call] = Field(default_factory=list)


class SkillsConfig(Config):
    required: list[str] = Field(default_factory=list)
    disallowed: list[str] = Field(default_factory=list)


class Passing:
    def grade(self, input: Any) -> GraderResult:
        return GraderResult.verdict(True, "fine")


class Matching(Passing):
    def settled_verdict(self, config: MatchesConfig) -> bool | None:
        return not config.negate if matches_every_text(config.pattern) else None


class Agent:
    async def execute(self, stimulus: Any, options: Any) -> Any:
        raise AssertionError("lint runs nothing")

    async def shutdown(self) -> None:
        return None


class ToolAgent(Agent):
    def tool_names(self, config: object) -> list[str]:
        return ["bash", "view"]


def _grader(name: str, config: type[Config] | None, factory: Any = Passing, **facts: Any) -> GraderSpec:
    return GraderSpec(name=name, summary="stands in for a real one", factory=factory, config=config, **facts)


GRADERS = (
    _grader("says-text", ContainsConfig),
    _grader("says-not-text", NotContainsConfig),
    _grader("says-pattern", MatchesConfig, Matching),
    _grader("ran", CallsConfig, constraints={"expect_tools": "required", "reject_tools": "disallowed"}),
    _grader("used", SkillsConfig, constraints={"expect_skills": "required", "reject_skills": "disallowed"}),
    _grader("opinion", None, kind="llm", requires_judge=True),
)
EXECUTORS = (
    ExecutorSpec(name="some-agent", summary="nothing is known of its tools", factory=Agent),
    ExecutorSpec(name="tool-agent", summary="its tools are known", factory=ToolAgent),
)


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    (tmp_path / ".git").mkdir()
    return ProjectBuilder(tmp_path)


@pytest.fixture
def cli(project: ProjectBuilder) -> Callable[..., CliResult]:
    def run(*args: str | Path, **options: Any) -> CliResult:
        return run_cli(["lint", *args], cwd=options.pop("cwd", project.root), **options)

    return run


class LintJson(Protocol):
    def __call__(self, *args: str | Path, **options: Any) -> dict[str, Any]: ...


@pytest.fixture
def lint_json(cli: Callable[..., CliResult]) -> LintJson:
    def run(*args: str | Path, **options: Any) -> dict[str, Any]:
        result = cli(*args, "--output", "json", **options)
        document: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (0 if document["passed"] else 1)
        return document

    return run


class SkillFindings(Protocol):
    def __call__(self, *args: str) -> list[tuple[str, str, str, int | None, int | None, str]]: ...


@pytest.fixture
def skill_findings(lint_json: LintJson) -> SkillFindings:
    """Findings of all skills as (code, level, file, line, column, message)."""

    def run(*args: str) -> list[tuple[str, str, str, int | None, int | None, str]]:
        skills = lint_json("skills", *args)["skills"]
        return [
            tuple(found[key] for key in ("code", "level", "file", "line", "column", "message"))  # type: ignore[misc]
            for skill in skills
            for check in skill["checks"]
            for found in check["findings"]
        ]

    return run


class SpecLint(Protocol):
    def __call__(self, text: str, *codes: str, **options: Any) -> list[Finding]: ...


@pytest.fixture
def spec_lint(project: ProjectBuilder) -> SpecLint:
    """Findings of one spec with the graders and executors above; of some codes only when any is named."""

    def run(text: str, *codes: str, **options: Any) -> list[Finding]:
        project.file("eval.yaml", text)
        report = lint_report(project.root, LintOptions(specs=("eval.yaml",), **options))
        return [found for found in report.evals[0].findings if not codes or found.code in codes]

    return run


@pytest.fixture
def stand_ins() -> tuple[GraderSpec | ExecutorSpec, ...]:
    return (*GRADERS, *EXECUTORS)


def lint_report(root: Path, options: LintOptions) -> LintReport:
    host = plugin_host(*GRADERS, *EXECUTORS)
    return lint(options, cwd=root, project=find_project(root, root), host=host)
