"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import grader_contract
from vally_grader_loops import plugin

MATCHES = [{"match": match, "max_cycle_period": 10} for match in ("observation", "name", "name-args")]
VALID = {
    "max-repeat": [{"max": 1}, *({"max": 1, **match} for match in MATCHES), {"max": 2, "tools": "^bash$"}],
    "loop-outcome": [
        {"max_acceptable_retries": 0},
        *({"max_acceptable_retries": 0, **match, "should_loop": True} for match in MATCHES),
    ],
}
INVALID = [{}, {"max": 0, "max_acceptable_retries": -1}, {"max": "2"}, {"max": 1, "max_acceptable_retries": 1}]


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
