"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_process import plugin

VALID = {
    "run-command": [{"command": "exit 0", "stdout_not_matches": "x"}, {"command": "nope-xyz", "args": []}],
    "program": [{"program": "exit", "args": ["1"], "shell": True}, {"program": "nope-xyz", "timeout": "5s"}],
}
INVALID = [{}, {"command": 1, "program": 1}, {"command": "a", "program": "a"}]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{record.name}-{case.__name__}")
        for record in plugin.vally_graders()
        for case in grader_contract(record, valid=VALID[record.name], invalid=INVALID)
    ],
)
def test_contract(case: Callable[[Path], None], tmp_path: Path) -> None:
    case(tmp_path)
