"""Every grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import event, grader_contract, trajectory
from vally_grader_json import plugin

VALID = {
    "json-schema": [{"schema": {"type": "object"}}, {"path": "app.json", "schema": {"required": ["a"]}}],
    "json-path": [{"query": "$.a", "equals": None}, {"path": "app.json", "query": "$..a", "exists": False}],
}
INVALID = [
    {},
    {"path": "../x", "schema": {}, "query": "$", "exists": True},
    {"schema": {"type": "thing"}, "query": "$", "equals": 1, "exists": True},
]
ANSWERS = [
    trajectory(event("assistant_message", content=text), output=text)
    for text in ('{"a": 1}', "[" * 100_000, "```json\n[1, {}]\n```", '"\\ud800"')
]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{record.name}-{case.__name__}")
        for record in plugin.vally_graders()
        for case in grader_contract(record, valid=VALID[record.name], invalid=INVALID, trajectories=ANSWERS)
    ],
)
def test_contract(case: Callable[[Path], None], tmp_path: Path) -> None:
    case(tmp_path)
