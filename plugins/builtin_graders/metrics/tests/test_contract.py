"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_metrics import plugin

COUNTS = [{"max": 0}, {"max": 10}]
VALID = {
    "token-budget": COUNTS,
    "tool-call-count": [*COUNTS, {"max": 0, "tools": "."}],
    "step-count": [*COUNTS, {"max": 0, "tools": ["^write$", "x"]}],
    "turn-count": COUNTS,
    "error-count": COUNTS,
    "wall-time": [{"max": "0s"}, {"max": "1m30s"}],
    "custom-metrics": [
        {"assertions": [{"metric": "errors", "equals": 0}, {"metric": "rate", "min": 0.5, "max": 1}]},
        {"path": "out/m.json", "assertions": [{"metric": "mode", "equals": "fast"}]},
    ],
}
INVALID = [{}, {"max": -1}, {"max": True}, {"max": "2", "assertions": []}]


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
