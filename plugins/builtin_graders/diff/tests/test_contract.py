"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_diff import plugin

TEXTS = [{"pattern": "(?m)^[+]"}, {"value": "app"}]
VALID = {"diff-contains": TEXTS, "diff-not-contains": TEXTS, "diff-empty": [{}]}
INVALID = [{"negate": False, "turn": 1}, {"pattern": "x", "value": "y"}, {"pattern": "["}]


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
