"""`--preflight`: everything is asked once whether it can start, and nothing starts when something cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorError, ExecutorSpec, JudgeError
from vally.testing import CliResult, ScriptedExecutor, ScriptedJudge, run_cli


class Agent(ScriptedExecutor):
    """Says when it is asked, and fails when it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__([])
        self.failure = failure
        self.asked: list[Any] = []

    async def preflight(self, config: Any) -> None:
        self.asked.append(config)
        if self.failure is not None:
            raise self.failure


class Judge(ScriptedJudge):
    """Cannot start, or can."""

    def __init__(self, failure: Exception | None = None) -> None:
        grade = {
            "rubric_scores": [{"criterion": "It is done.", "score": 5, "reasoning": "r"}],
            "overall_score": 5,
            "overall_reasoning": "why",
        }
        super().__init__(grade)
        self.failure = failure
        self.asked: list[str] = []

    async def preflight(self, model: str) -> None:
        self.asked.append(model)
        if self.failure is not None:
            raise self.failure


def evaluate(root: Path, agent: Agent, judge: Judge, *words: str) -> CliResult:
    for name in ("one", "two"):
        stimulus = {"name": "s", "prompt": "p", "rubric": ["It is done."], "graders": [{"type": "prompt"}]}
        spec = {"name": name, "defaults": {"executor": "agent"}, "stimuli": [stimulus]}
        (root / f"{name}.eval.yaml").write_text(json.dumps(spec))
    record = ExecutorSpec(name="agent", summary="is asked", factory=lambda: agent)
    return run_cli(["eval", "-e", ".", *words], cwd=root, plugins=[record, judge.record()])


def test_each_executor_and_judge_is_asked_once(tmp_path: Path) -> None:
    agent, judge = Agent(), Judge()
    run = evaluate(tmp_path, agent, judge, "--preflight")
    assert run.exit_code == 0, run.stderr
    assert (len(agent.asked), judge.asked, agent.shutdowns) == (1, ["gpt-5.6-terra"], 1)
    assert len(judge.providers) == 1


def test_a_run_that_is_only_planned_asks_too(tmp_path: Path) -> None:
    agent, judge = Agent(), Judge()
    planned = evaluate(tmp_path, agent, judge, "--preflight", "--dry-run")
    assert planned.exit_code == 0, planned.stderr
    assert (len(agent.asked), judge.asked) == (1, ["gpt-5.6-terra"])
    failing = Agent(ExecutorError("no login", code="executor-unavailable"))
    refused = evaluate(tmp_path, failing, judge, "--preflight", "--dry-run")
    assert (refused.exit_code, "executor 'agent': no login" in refused.stderr) == (1, True)
    assert not (tmp_path / "vally-results").exists()


def test_nothing_is_asked_without_the_option(tmp_path: Path) -> None:
    agent, judge = Agent(), Judge()
    assert evaluate(tmp_path, agent, judge).exit_code == 0
    assert (agent.asked, judge.asked) == ([], [])


def test_judges_of_a_run_that_is_not_graded_are_not_asked(tmp_path: Path) -> None:
    agent, judge = Agent(), Judge(JudgeError("no", kind="unavailable"))
    assert evaluate(tmp_path, agent, judge, "--preflight", "--skip-grade").exit_code == 0
    assert (len(agent.asked), judge.asked) == (1, [])


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (ExecutorError("no login", code="executor-unavailable"), "executor 'agent': no login"),
        (ZeroDivisionError("oops"), "executor 'agent': ZeroDivisionError: oops"),
    ],
)
def test_all_that_cannot_start_is_named_and_nothing_runs(tmp_path: Path, failure: Exception, line: str) -> None:
    agent, judge = Agent(failure), Judge(JudgeError("no answer", kind="transport"))
    run = evaluate(tmp_path, agent, judge, "--preflight")
    assert (run.exit_code, run.run_dir) == (1, None)
    assert run.stderr.splitlines()[-3:] == [
        "error: --preflight: 2 of 2 cannot start",
        f"  {line}",
        "  judge 'copilot', model 'gpt-5.6-terra': no answer",
    ]
    assert (agent.shutdowns, judge.shutdowns) == (1, 1)
