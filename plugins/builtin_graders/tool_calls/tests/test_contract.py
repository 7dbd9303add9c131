"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_tool_calls import plugin

NAMES = [{"required": ["a", "*"]}, {"disallowed": "*"}, {"required": ["a"], "disallowed": ["b"]}]
VALID = {
    "tool-calls": [
        {"required": ["write", {"name": ".", "args": {"path": "json$"}, "result": "w", "final": True}]},
        {"disallowed": ["^rm$", {"name": ".", "pattern": "app", "write_only": True}]},
        {"sequence": ["write", "bash"], "parallel": [".", "bash"]},
    ],
    "skill-invocation": NAMES,
    "system-event": NAMES,
}
INVALID = [{}, {"required": 1}, {"required": [], "disallowed": []}, {"required": ["a"], "disallowed": ["a"]}]


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
