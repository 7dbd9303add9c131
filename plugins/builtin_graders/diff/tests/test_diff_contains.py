"""`diff-contains` and `diff-not-contains`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderSpec, PluginHost, TurnDiff
from vally.testing import event, grade, trajectory
from vally_grader_diff import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
DIVIDE = "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1,2 @@\n x\n+def divide(a, b):\n"


def two_turns() -> list[Event]:
    return [event("user_message", turn=turn, content=str(turn)) for turn in (0, 1)]


@pytest.mark.parametrize(
    ("keyword", "config", "diff", "passed", "evidence"),
    [
        pytest.param(
            "diff-contains",
            {"pattern": "def divide"},
            DIVIDE,
            True,
            "Pattern /def divide/ found in workspace diff",
            id="DC-1",
        ),
        pytest.param(
            "diff-contains",
            {"pattern": "def divide"},
            "",
            False,
            "Pattern /def divide/ not found in workspace diff",
            id="DC-2",
        ),
        pytest.param(
            "diff-not-contains",
            {"pattern": r"secrets\."},
            DIVIDE,
            True,
            r"Pattern /secrets\./ not found in workspace diff",
            id="DC-3",
        ),
        pytest.param(
            "diff-not-contains",
            {"pattern": "x"},
            None,
            False,
            "No workspace diff is available for this run. It was not recorded.",
            id="DC-4",
        ),
        pytest.param("diff-contains", {"value": "a.b("}, "+a.b(\n", True, "'a.b(' found in workspace diff", id="DC-5"),
        pytest.param(
            "diff-contains",
            {"value": "A.B("},
            "+a.b(\n",
            False,
            "'A.B(' NOT found in workspace diff",
            id="case-sensitive",
        ),
        pytest.param(
            "diff-contains",
            {"pattern": r"(?m)^\+\+\+ b/calc\.py$"},
            DIVIDE,
            True,
            r"Pattern /(?m)^\+\+\+ b/calc\.py$/ found in workspace diff",
            id="headers",
        ),
        pytest.param(
            "diff-contains",
            {"value": "divide", "negate": True},
            DIVIDE,
            False,
            "'divide' found in workspace diff",
            id="negate",
        ),
    ],
)
def test_table(keyword: str, config: dict[str, Any], diff: str | None, passed: bool, evidence: str) -> None:
    result = grade(RECORDS[keyword], config, trajectory(diff=diff))
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)
    assert result.metadata == (None if diff is None else {"diffBytes": len(diff.encode())})
    assert result.name == f"{keyword} {config.get('pattern') or config.get('value')}"


@pytest.mark.parametrize("keyword", ["diff-contains", "diff-not-contains"])
def test_the_pattern_is_checked_before_the_diff(keyword: str) -> None:
    """DC-6."""
    result = grade(RECORDS[keyword], {"pattern": "[bad"}, trajectory())
    assert not result.passed
    assert result.evidence.startswith("Invalid regex pattern: [bad. Error: ")


def turn_diff(turn: int, **fields: Any) -> TurnDiff:
    return TurnDiff(turn=turn, **fields)


@pytest.mark.parametrize(
    ("turn", "turn_diffs", "passed", "evidence"),
    [
        pytest.param(
            1, [turn_diff(0, diff=""), turn_diff(1, diff="+fix\n")], True, "'fix' found in workspace diff", id="DC-7"
        ),
        pytest.param(
            1, None, False, "No workspace diff is available for turn 1 of this run. It was not recorded.", id="DC-8"
        ),
        pytest.param(
            0,
            None,
            False,
            "No workspace diff is available for turn 0 of this run. It was not recorded.",
            id="first of two",
        ),
        pytest.param(
            1,
            [turn_diff(1, status="failed", error="no git")],
            False,
            "No workspace diff is available for turn 1 of this run. Capturing it failed: no git",
            id="failed",
        ),
        pytest.param(
            1,
            [turn_diff(1, diff="+fix"), turn_diff(1, diff="+fix")],
            False,
            "No workspace diff is available for turn 1 of this run. The recorded turn diff is malformed.",
            id="twice",
        ),
        pytest.param(
            1,
            [turn_diff(1, status="captured")],
            False,
            "No workspace diff is available for turn 1 of this run. The recorded turn diff is malformed.",
            id="malformed",
        ),
    ],
)
def test_turns(turn: int, turn_diffs: list[TurnDiff] | None, passed: bool, evidence: str) -> None:
    recorded = trajectory(*two_turns(), stimulus={"turns": ["0", "1"]}, diff="+fix\n", turn_diffs=turn_diffs)
    result = grade(RECORDS["diff-contains"], {"value": "fix"}, recorded, turn=turn)
    assert (result.passed, result.evidence) == (passed, evidence)


def test_the_only_turn_uses_the_run_diff() -> None:
    recorded = trajectory(event("user_message", content="0"), stimulus={"prompt": "0"}, diff="+fix\n")
    assert grade(RECORDS["diff-contains"], {"value": "fix"}, recorded, turn=0).passed


def test_sidecar(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "run.diff").write_text("+fix\n")
    record, config = RECORDS["diff-contains"], {"value": "fix"}
    assert grade(record, config, trajectory(diff_path="trials/run.diff"), run_dir=tmp_path).passed
    for path in ("trials/missing.diff", "../outside.diff"):
        result = grade(record, config, trajectory(diff_path=path), run_dir=tmp_path)
        assert result.evidence == (
            f"No workspace diff is available for this run. The diff file '{path}' cannot be read."
        )


@pytest.mark.parametrize(
    ("keyword", "config", "problem"),
    [
        ("diff-contains", {}, "provide exactly one of 'pattern' or 'value'"),
        ("diff-contains", {"pattern": "a", "value": "b"}, "provide exactly one of 'pattern' or 'value'"),
        ("diff-contains", {"value": ""}, "'value' must not be empty"),
        ("diff-contains", {"value": 1}, "'value' must be a string"),
        (
            "diff-not-contains",
            {"value": "a", "negate": False},
            "'negate' must not be false: the keyword itself is negated",
        ),
        ("diff-contains", {"value": "a", "path": "b"}, "unknown key 'path'"),
    ],
)
def test_invalid_configs(keyword: str, config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], config)
    assert str(caught.value) == f"Invalid config for {keyword}: {problem}"


def test_scope_is_not_supported() -> None:
    result = grade(RECORDS["diff-contains"], {"value": "a"}, trajectory(diff=""), scope="main")
    assert (result.status, result.evidence) == ("error", "Invalid config for diff-contains: 'scope' is not supported")


@pytest.mark.parametrize("keyword", list(RECORDS))
def test_every_config_asks_for_the_diffs(keyword: str) -> None:
    config = {} if keyword == "diff-empty" else {"value": "x"}
    parsed = PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], config)
    assert parsed.evidence() == {"diff", "turn-diff"}
