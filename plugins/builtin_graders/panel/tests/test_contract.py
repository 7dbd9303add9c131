"""The grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import ScriptedJudge, grader_contract
from vally_grader_panel import plugin

SCORES = [{"criterion": "a", "score": 1, "reasoning": "r"}, {"criterion": "b", "score": 1, "reasoning": ""}]
GRADE = {"rubric_scores": SCORES, "overall_score": 1, "overall_reasoning": "met"}
VALID = [
    {"models": "a"},
    {
        "models": ["a", {"model": "b", "reasoning_effort": "low"}, "a"],
        "aggregation": "unanimous",
        "criteria": [{"name": "one"}, {"name": "two", "description": "more", "weight": 2, "pass_threshold": 0.5}],
        "prompt": "Be strict.",
        "reasoning_effort": "high",
        "scoring": "binary",
        "threshold": 1,
        "evidence": ["diff", "repo", "trajectory"],
        "output_delivery": "workspace",
    },
    {"models": ["a"], "overall_threshold": 0.4, "aggregation": "majority"},
]
INVALID = [
    {},
    {"models": []},
    {"models": [1]},
    {"models": [" "]},
    {"models": [{"reasoning_effort": "low"}]},
    {"models": ["a"], "model": "b"},
    {"models": ["a"], "aggregation": "max"},
    {"models": ["a"], "criteria": []},
    {"models": ["a"], "output_delivery": "inline"},
]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.__name__)
        for record in plugin.vally_graders()
        for case in grader_contract(record, valid=VALID, invalid=INVALID, judge=ScriptedJudge(GRADE))
    ],
)
def test_contract(case: Callable[[Path], None], tmp_path: Path) -> None:
    case(tmp_path)
