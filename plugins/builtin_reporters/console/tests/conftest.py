"""Runs told to the reporter, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, Metrics, TokenUsage, TrialResult
from vally.testing import PlayedRun, ScriptedRun, trajectory, trial_result
from vally_reporter_console.reporter import ConsoleReporter

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Tell the reporter of a run with these results; progress is off unless an option turns it on."""

    def played(*results: TrialResult, stdout: Any = None, stderr: Any = None, **options: Any) -> PlayedRun:
        run = ScriptedRun(tmp_path, results, **{"progress": "none", **options})
        return run.play(ConsoleReporter(), stdout=stdout, stderr=stderr)

    return played


@pytest.fixture
def grader() -> Grader:
    """A result of a grader with a display name."""

    def made(name: str, passed: bool | None = True, evidence: str = "as wanted", **fields: Any) -> GraderResult:
        if passed is None:
            return GraderResult.error(evidence, name=name, **fields)
        return GraderResult.verdict(passed, evidence, name=name, **fields)

    return made


@pytest.fixture
def trials() -> Callable[..., list[TrialResult]]:
    """Trials of one stimulus, each with the graders given for it, or the words of its status."""

    def made(name: str, *graders: Sequence[GraderResult] | dict[str, Any], **fields: Any) -> list[TrialResult]:
        results = []
        for index, given in enumerate(graders):
            own = {"trial_index": index, "total_trials": len(graders), **fields}
            if isinstance(given, dict):
                results.append(trial_result(name, **{**own, **given}))
            else:
                results.append(trial_result(name, *given, **own))
        return results

    return made


@pytest.fixture
def measured() -> Any:
    """A trajectory with the metrics of a longer session."""
    metrics = Metrics(
        token_usage=TokenUsage(total_tokens=2847),
        turn_count=4,
        tool_call_count=6,
        wall_time_ms=8349,
        error_count=0,
        skill_activation_breakdown={"config-writer": 1},
    )
    return trajectory(metrics=metrics, output="done", metadata={"model": "gpt-x"})
