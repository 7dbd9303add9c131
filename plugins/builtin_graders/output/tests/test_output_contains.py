"""`output-contains` and `output-not-contains`."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, GraderResult, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_output import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
TWO_TURNS = trajectory(
    event("user_message", turn=0, content="remember"),
    event("assistant_message", turn=0, content="Noted"),
    event("user_message", turn=1, content="say"),
    event("assistant_message", turn=1, content="ALPHA-7"),
    stimulus={"turns": ["remember", "say"]},
    output="ALPHA-7",
)


def run(keyword: str, config: dict[str, Any], output: str) -> GraderResult:
    return grade(RECORDS[keyword], config, trajectory(output=output))


@pytest.mark.parametrize(
    ("keyword", "config", "output", "passed", "evidence"),
    [
        pytest.param(
            "output-contains", {"substring": "test"}, "Wrote add.test.js", True, "'test' found in output", id="OC-1"
        ),
        pytest.param("output-contains", {"substring": "TEST"}, "a test", True, "'TEST' found in output", id="OC-2"),
        pytest.param(
            "output-contains",
            {"substring": "TEST", "case_sensitive": True},
            "a test",
            False,
            "'TEST' NOT found in output",
            id="OC-3",
        ),
        pytest.param(
            "output-not-contains", {"value": "password"}, "done", True, "'password' NOT found in output", id="OC-4"
        ),
        pytest.param(
            "output-contains",
            {"substring": "sorry", "negate": True},
            "Sorry, no",
            False,
            "'sorry' found in output",
            id="OC-5",
        ),
        pytest.param("output-not-contains", {"substring": "x"}, "", True, "'x' NOT found in output", id="empty output"),
        pytest.param("output-contains", {"value": "a\nb"}, "a\nb", True, "'a\\nb' found in output", id="line break"),
        pytest.param("output-contains", {"substring": "ÄÖ"}, "äö", True, "'ÄÖ' found in output", id="full lower case"),
    ],
)
def test_table(keyword: str, config: dict[str, Any], output: str, passed: bool, evidence: str) -> None:
    result = run(keyword, config, output)
    assert (result.passed, result.score, result.evidence) == (passed, float(passed), evidence)
    assert result.label == ("correct" if passed else "incorrect")
    assert result.status is None
    assert result.metadata is None


@pytest.mark.parametrize(
    ("substring", "turn", "passed", "evidence"),
    [
        pytest.param("ALPHA-7", 1, True, "'ALPHA-7' found in output", id="OC-6"),
        pytest.param("ALPHA-7", 0, False, "'ALPHA-7' NOT found in output", id="OC-6-other-turn"),
        pytest.param("x", 5, False, "Turn 5 is not recorded in this trajectory", id="OC-8"),
    ],
)
def test_turns(substring: str, turn: int, passed: bool, evidence: str) -> None:
    result = grade(RECORDS["output-contains"], {"substring": substring}, TWO_TURNS, turn=turn)
    assert (result.passed, result.evidence) == (passed, evidence)


@pytest.mark.parametrize(
    ("keyword", "config", "problem"),
    [
        pytest.param(
            "output-contains",
            {"substring": "x", "value": "y"},
            "provide exactly one of 'substring' or 'value'",
            id="OC-7",
        ),
        ("output-contains", {}, "'substring' is required"),
        ("output-contains", {"substring": ""}, "'substring' must not be empty"),
        ("output-contains", {"substring": 42}, "'substring' must be a string"),
        ("output-contains", {"substring": None}, "'substring' must be a string"),
        ("output-contains", {"substring": "x", "negate": "yes"}, "'negate' must be true or false"),
        ("output-contains", {"substring": "x", "text": "y"}, "unknown key 'text'"),
        (
            "output-not-contains",
            {"substring": "x", "negate": False},
            "'negate' must not be false: the keyword itself is negated",
        ),
    ],
)
def test_invalid_configs(keyword: str, config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], config)
    assert str(caught.value) == f"Invalid config for {keyword}: {problem}"


def test_redundant_negation_is_legal() -> None:
    assert run("output-not-contains", {"substring": "x", "negate": True}, "y").passed


def test_names() -> None:
    """NM-4: control characters and runs of blanks become one blank."""
    assert run("output-contains", {"substring": "a\tb  c\n"}, "").name == "output-contains a b c"
    assert run("output-not-contains", {"value": "v"}, "").name == "output-not-contains v"


@pytest.mark.parametrize(
    ("keyword", "negate", "absence"),
    [("output-contains", None, False), ("output-contains", True, True), ("output-not-contains", None, True)],
)
def test_asserts_absence(keyword: str, negate: bool | None, absence: bool) -> None:
    host, record = PluginHost.from_objects(plugin), RECORDS[keyword]
    config = {"substring": "x"} if negate is None else {"substring": "x", "negate": negate}
    assert host.create(record).asserts_absence(host.parse_config(record, config)) is absence
