"""The grader of this plugin keeps the contract of graders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import ScriptedJudge, grader_contract
from vally_grader_prompt import plugin

SCORES = [{"criterion": "a", "score": 1, "reasoning": "r"}, {"criterion": "b", "score": 1, "reasoning": ""}]
GRADE = {"rubric_scores": SCORES, "overall_score": 1, "overall_reasoning": "met"}
VALID = [
    {},
    {
        "prompt": "Be strict.",
        "model": "m",
        "reasoning_effort": "high",
        "scoring": "binary",
        "threshold": 1,
        "evidence": ["trajectory", "diff", "golden_patch", "repo"],
        "output_delivery": "workspace",
    },
]
INVALID = [
    {"prompt": 1},
    {"model": " "},
    {"reasoning_effort": ""},
    {"scoring": "scale_1_3"},
    {"threshold": 1.5},
    {"threshold": "0.5"},
    {"threshold": True},
    {"evidence": []},
    {"evidence": "diff"},
    {"evidence": ["diff", "diff"]},
    {"evidence": ["files"]},
    {"output_delivery": "inline"},
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
