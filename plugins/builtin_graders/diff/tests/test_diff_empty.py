"""`diff-empty`."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, GraderSpec, PluginHost, TurnDiff
from vally.testing import event, grade, trajectory
from vally_grader_diff import plugin

RECORD: GraderSpec = {record.name: record for record in plugin.vally_graders()}["diff-empty"]
NOT_EMPTY = "Workspace diff is not empty — the stimulus changed the workspace"


@pytest.mark.parametrize(
    ("fields", "passed", "evidence"),
    [
        pytest.param({"diff": ""}, True, "Workspace diff is empty", id="DE-1"),
        pytest.param({"diff": "@@ -1 +1 @@\n-a\n+b\n"}, False, NOT_EMPTY, id="DE-2"),
        pytest.param({}, False, "No workspace diff is available for this run. It was not recorded.", id="DE-3"),
        pytest.param(
            {"diff_error": "git not found"},
            False,
            "No workspace diff is available for this run. Capturing it failed: git not found",
            id="DE-5",
        ),
        pytest.param({"diff": " \n"}, True, "Workspace diff is empty", id="blank"),
    ],
)
def test_run(fields: dict[str, Any], passed: bool, evidence: str) -> None:
    result = grade(RECORD, {}, trajectory(**fields))
    assert (result.passed, result.score, result.evidence) == (passed, float(passed), evidence)
    assert result.name == "diff-empty"


@pytest.mark.parametrize(
    ("turn", "passed", "evidence"),
    [pytest.param(0, True, "Workspace diff is empty", id="DE-4"), pytest.param(1, False, NOT_EMPTY, id="DE-4-other")],
)
def test_turns(turn: int, passed: bool, evidence: str) -> None:
    recorded = trajectory(
        *(event("user_message", turn=number, content=str(number)) for number in (0, 1)),
        stimulus={"turns": ["0", "1"]},
        diff="+x\n",
        turn_diffs=[TurnDiff(turn=0, diff=""), TurnDiff(turn=1, diff="+x\n")],
    )
    result = grade(RECORD, {}, recorded, turn=turn)
    assert (result.passed, result.evidence) == (passed, evidence)
    assert result.metadata == {"diffBytes": 0 if passed else 3, "turn": turn}


def test_no_config_is_allowed() -> None:
    """DE-6."""
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORD, {"negate": True})
    assert str(caught.value) == "Invalid config for diff-empty: unknown key 'negate'"
