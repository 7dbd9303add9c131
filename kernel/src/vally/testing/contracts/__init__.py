"""Contracts: what every plugin of a kind must do, as cases for `pytest.mark.parametrize`."""

from __future__ import annotations

from vally.testing.contracts.backend import backend_contract
from vally.testing.contracts.case import Case
from vally.testing.contracts.executor import executor_contract
from vally.testing.contracts.exporter import exporter_contract
from vally.testing.contracts.grader import grader_contract
from vally.testing.contracts.judge import Answer, Hang, ModelReply, Status, Text, judge_contract
from vally.testing.contracts.reporter import reporter_contract

__all__ = [
    "Answer",
    "Case",
    "Hang",
    "ModelReply",
    "Status",
    "Text",
    "backend_contract",
    "executor_contract",
    "exporter_contract",
    "grader_contract",
    "judge_contract",
    "reporter_contract",
]
