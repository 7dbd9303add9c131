"""Runs told to the reporter as if a workflow ran them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import ScriptedRun
from vally_reporter_github.reporter import GithubReporter


@dataclass(frozen=True)
class Told:
    """The lines on stderr and the summary of the step."""

    lines: list[str]
    summary: str


Tell = Callable[..., Told]


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Tell the reporter of a run with these results."""

    def told(*results: TrialResult, environ: Mapping[str, str] | None = None, **options: Any) -> Told:
        summary = tmp_path / "summary.md"
        workflow = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        run = ScriptedRun(tmp_path, results, environ=workflow if environ is None else environ, **options)
        played = run.play(GithubReporter())
        assert played.stdout == ""
        assert played.artifacts == {}
        lines = [line for line in played.stderr.split("\n") if line]
        return Told(lines, summary.read_text(encoding="utf-8") if summary.exists() else "")

    return told


@pytest.fixture
def grader() -> Callable[..., GraderResult]:
    """A result of a grader with a display name."""

    def made(name: str, passed: bool | None = True, evidence: str = "as wanted", **fields: Any) -> GraderResult:
        if passed is None:
            return GraderResult.error(evidence, name=name, **fields)
        return GraderResult.verdict(passed, evidence, name=name, **fields)

    return made
