"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_output import plugin

CONTAINS = [{"substring": "app"}, {"value": "APP", "case_sensitive": True}]
MATCHES = [{"pattern": "(?i)APP"}, {"pattern": r"\d+"}]
VALID = {
    "output-contains": [*CONTAINS, {"substring": "x", "negate": True}],
    "output-not-contains": CONTAINS,
    "output-matches": [*MATCHES, {"pattern": "x", "negate": True}],
    "output-not-matches": MATCHES,
    "transcript-contains": CONTAINS,
    "transcript-not-contains": CONTAINS,
    "transcript-matches": MATCHES,
    "transcript-not-matches": MATCHES,
    "assistant-contains-tool-output": [{"tools": [".*"], "pattern": "w(.)"}, {"tools": "write", "pattern": "."}],
}
INVALID = [{}, {"substring": 1, "pattern": 1}, {"substring": "", "pattern": ""}]


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
