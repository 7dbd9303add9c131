"""The `transcript-*` keywords."""

from __future__ import annotations

from typing import Any

import pytest

from vally import GraderResult, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_output import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}


def run(keyword: str, config: dict[str, Any], messages: list[str], **facts: Any) -> GraderResult:
    events = [event("assistant_message", content=message) for message in messages]
    return grade(RECORDS[keyword], config, trajectory(*events, output=messages[-1] if messages else ""), **facts)


@pytest.mark.parametrize(
    ("keyword", "config", "messages", "passed", "evidence", "hit"),
    [
        pytest.param(
            "transcript-contains",
            {"substring": "plan"},
            ["My plan: …", "Done"],
            True,
            "'plan' found in transcript",
            0,
            id="TC-1",
        ),
        pytest.param(
            "transcript-contains",
            {"substring": "plan"},
            ["Done"],
            False,
            "'plan' NOT found in transcript",
            None,
            id="TC-2",
        ),
        pytest.param(
            "transcript-not-contains",
            {"substring": "secret"},
            ["a", "b"],
            True,
            "'secret' NOT found in transcript",
            None,
            id="TC-3",
        ),
        pytest.param(
            "transcript-not-contains",
            {"substring": "secret"},
            [],
            False,
            "No assistant messages in transcript",
            None,
            id="TC-4",
        ),
        pytest.param(
            "transcript-contains",
            {"substring": "ab"},
            ["a", "b"],
            False,
            "'ab' NOT found in transcript",
            None,
            id="TC-5",
        ),
        pytest.param(
            "transcript-not-contains", {"value": "B"}, ["a", "b"], False, "'B' found in transcript", 1, id="negated hit"
        ),
        pytest.param(
            "transcript-contains",
            {"value": "a"},
            ["", " \n"],
            False,
            "No assistant messages in transcript",
            None,
            id="blank messages",
        ),
        pytest.param(
            "transcript-matches",
            {"pattern": r"step \d"},
            ["step 1", "ok"],
            True,
            r"Transcript matches pattern /step \d/",
            0,
            id="TM-1",
        ),
        pytest.param(
            "transcript-matches",
            {"pattern": "^ok$"},
            ["step 1", "ok"],
            True,
            "Transcript matches pattern /^ok$/",
            1,
            id="TM-2",
        ),
        pytest.param(
            "transcript-not-matches",
            {"pattern": "err"},
            ["error"],
            False,
            "Transcript matches pattern /err/",
            0,
            id="TM-3",
        ),
        pytest.param(
            "transcript-not-matches",
            {"pattern": "err"},
            [],
            False,
            "No assistant messages in transcript",
            None,
            id="TM-4",
        ),
        pytest.param(
            "transcript-not-matches",
            {"pattern": "err"},
            ["ok"],
            True,
            "Transcript does not match pattern /err/",
            None,
            id="negated miss",
        ),
    ],
)
def test_table(
    keyword: str, config: dict[str, Any], messages: list[str], passed: bool, evidence: str, hit: int | None
) -> None:
    result = run(keyword, config, messages)
    assert (result.passed, result.score, result.evidence) == (passed, float(passed), evidence)
    count = len([message for message in messages if message.strip()])
    assert result.metadata == {"messageCount": count, "matchedMessage": hit}


@pytest.mark.parametrize("messages", [["x"], []])
def test_the_pattern_is_checked_first(messages: list[str]) -> None:
    """TM-5."""
    result = run("transcript-matches", {"pattern": "("}, messages)
    assert not result.passed
    assert result.evidence.startswith("Invalid regex pattern: (. Error: ")


def test_turn() -> None:
    """TC-6."""
    recorded = trajectory(
        event("user_message", turn=0, content="1"),
        event("assistant_message", turn=0, content="hello"),
        event("user_message", turn=1, content="2"),
        event("assistant_message", turn=1, content="hi"),
        stimulus={"turns": ["1", "2"]},
    )
    result = grade(RECORDS["transcript-contains"], {"substring": "hi"}, recorded, turn=0)
    assert (result.passed, result.evidence) == (False, "'hi' NOT found in transcript")
    assert result.metadata == {"messageCount": 1, "matchedMessage": None, "turn": 0}


def test_scope() -> None:
    recorded = trajectory(
        event("assistant_message", content="main"),
        event("assistant_message", agent_id="a1", agent_name="helper", content="secret"),
    )
    record = RECORDS["transcript-contains"]
    assert not grade(record, {"substring": "secret"}, recorded, scope="main").passed
    assert grade(record, {"substring": "secret"}, recorded, scope={"agent": "helper"}).passed
    result = grade(record, {"substring": "secret"}, recorded, scope="nobody")
    assert (result.passed, result.evidence) == (False, "No events in agent scope 'nobody'")


@pytest.mark.parametrize(
    ("keyword", "config", "name"),
    [
        ("transcript-contains", {"substring": "a"}, "transcript-contains a"),
        ("transcript-not-contains", {"value": "a"}, "transcript-not-contains a"),
        ("transcript-matches", {"pattern": "a+"}, "transcript-matches a+"),
        ("transcript-not-matches", {"pattern": "a+"}, "transcript-not-matches a+"),
    ],
)
def test_names_and_absence(keyword: str, config: dict[str, Any], name: str) -> None:
    host, record = PluginHost.from_objects(plugin), RECORDS[keyword]
    grader, parsed = host.create(record), host.parse_config(record, config)
    assert run(keyword, config, ["x"]).name == grader.default_name(parsed) == name
    assert grader.asserts_absence(parsed) is ("not" in keyword)
