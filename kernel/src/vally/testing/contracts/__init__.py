"""Contracts: what every plugin of a kind must do, as cases for `pytest.mark.parametrize`."""

from __future__ import annotations

from vally.testing.contracts.case import Case
from vally.testing.contracts.executor import executor_contract
from vally.testing.contracts.grader import grader_contract

__all__ = ["Case", "executor_contract", "grader_contract"]
