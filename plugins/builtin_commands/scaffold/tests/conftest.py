"""Stand-ins for graders that may be installed, and short ways to run the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import Field

from vally import Config, GraderSpec, PluginHost
from vally.testing import CliResult, ProjectBuilder, run_cli


class PathConfig(Config):
    path: str = Field(min_length=1)


class MatchesConfig(PathConfig):
    pattern: str


class ContainsConfig(Config):
    substring: str


class JudgedConfig(Config):
    threshold: float = 0.5


class ToolsConfig(Config):
    required: list[str] = Field(default_factory=list)
    disallowed: list[str] = Field(default_factory=list)


class LimitConfig(Config):
    max: str | int


def record(name: str, config: type[Config], **fields: object) -> GraderSpec:
    return GraderSpec(name=name, summary=f"stands in for {name}", factory=dict, config=config, **fields)  # type: ignore[arg-type]


GRADERS = (
    record("file-exists", PathConfig, requires_workspace=True),
    record("file-matches", MatchesConfig, requires_workspace=True),
    record("output-contains", ContainsConfig),
    record("prompt", JudgedConfig, requires_judge=True),
    record("tool-calls", ToolsConfig, constraints={"expect_tools": "required", "reject_tools": "disallowed"}),
    record("wall-time", LimitConfig, constraints={"max_duration": "max"}),
)

Run = Callable[..., CliResult]


@pytest.fixture
def graders() -> tuple[GraderSpec, ...]:
    return GRADERS


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return ProjectBuilder(tmp_path / "project")


@pytest.fixture
def run(project: ProjectBuilder) -> Run:
    """The program in the project, with the stand-ins for what is not installed."""
    installed = PluginHost().records("grader")
    missing = [record for record in GRADERS if record.name not in installed]

    def call(*words: str | Path, **env: str) -> CliResult:
        return run_cli(words, cwd=project.root, env=env, plugins=missing)

    return call
