"""Test kit for plugin authors: hosts, the program in process, projects, scripted agents and judges, contracts."""

from __future__ import annotations

from vally.testing.executors import ScriptedExecutor, Wait
from vally.testing.grading import grade
from vally.testing.hosts import plugin_host
from vally.testing.judges import ScriptedJudge
from vally.testing.program import CliResult, run_cli
from vally.testing.projects import ProjectBuilder
from vally.testing.sentinels import process_sentinel, tree_digest
from vally.testing.trajectories import event, trajectory

__all__ = [
    "CliResult",
    "ProjectBuilder",
    "ScriptedExecutor",
    "ScriptedJudge",
    "Wait",
    "event",
    "grade",
    "plugin_host",
    "process_sentinel",
    "run_cli",
    "trajectory",
    "tree_digest",
]
