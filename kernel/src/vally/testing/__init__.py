"""Test kit for plugin authors: hosts, the program in process, projects, scripted agents and judges, contracts."""

from __future__ import annotations

from vally.testing.contracts import (
    Answer,
    Case,
    Hang,
    ModelReply,
    Status,
    Text,
    backend_contract,
    executor_contract,
    exporter_contract,
    grader_contract,
    judge_contract,
    reporter_contract,
)
from vally.testing.executors import ScriptedExecutor, Wait
from vally.testing.grading import grade
from vally.testing.hosts import plugin_host
from vally.testing.judges import ScriptedJudge
from vally.testing.mock_llm import MockLlm, MockRequest
from vally.testing.program import CliResult, run_cli
from vally.testing.projects import ProjectBuilder
from vally.testing.runs import PlayedRun, ScriptedRun, trial_result
from vally.testing.sentinels import process_sentinel, tree_digest
from vally.testing.trajectories import event, trajectory
from vally.testing.trials import executor_options, run_context, stimulus, trial_item, trial_options

__all__ = [
    "Answer",
    "Case",
    "CliResult",
    "Hang",
    "MockLlm",
    "MockRequest",
    "ModelReply",
    "PlayedRun",
    "ProjectBuilder",
    "ScriptedExecutor",
    "ScriptedJudge",
    "ScriptedRun",
    "Status",
    "Text",
    "Wait",
    "backend_contract",
    "event",
    "executor_contract",
    "executor_options",
    "exporter_contract",
    "grade",
    "grader_contract",
    "judge_contract",
    "plugin_host",
    "process_sentinel",
    "reporter_contract",
    "run_cli",
    "run_context",
    "stimulus",
    "trajectory",
    "tree_digest",
    "trial_item",
    "trial_options",
    "trial_result",
]
