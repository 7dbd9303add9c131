"""Runs told to the reporter, and the file it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, Metrics, TokenUsage, TrialResult
from vally.testing import ScriptedRun, trajectory
from vally_reporter_markdown.reporter import MarkdownReporter


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., str]:
    """Tell the reporter of a run with these results."""

    def reported(*results: TrialResult, **options: Any) -> str:
        run = ScriptedRun(tmp_path, results, **options)
        played = run.play(MarkdownReporter())
        assert played.artifacts == {"Markdown": run.run_dir / "eval-results.md"}
        assert played.stdout == played.stderr == ""
        return played.artifacts["Markdown"].read_bytes().decode("utf-8")

    return reported


@pytest.fixture
def grader() -> Callable[..., GraderResult]:
    """A result of a grader with a display name."""

    def made(name: str, passed: bool | None = True, evidence: str = "as wanted", **fields: Any) -> GraderResult:
        if passed is None:
            return GraderResult.error(evidence, name=name, **fields)
        return GraderResult.verdict(passed, evidence, name=name, **fields)

    return made


@pytest.fixture
def measured() -> Callable[..., Any]:
    """A trajectory with metrics and an output."""

    def made(turns: int = 4, tool_calls: int = 6, tokens: int = 2847, output: str = "Done.", **fields: Any) -> Any:
        usage = TokenUsage(total_tokens=tokens)
        metrics = Metrics(token_usage=usage, turn_count=turns, tool_call_count=tool_calls)
        return trajectory(metrics=metrics, output=output, **fields)

    return made
