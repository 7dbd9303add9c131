"""`completed` and `exit-success`."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_completion import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}


def end() -> Event:
    return event("turn_end", turnId="0")


def failure() -> Event:
    return event("error", message="boom")


@pytest.mark.parametrize(
    ("keyword", "events", "fields", "passed", "evidence"),
    [
        pytest.param("completed", [end()], {"output": "x"}, True, "Agent session completed successfully", id="CP-1"),
        pytest.param(
            "completed", [failure(), failure()], {"output": "x"}, False, "2 error event(s) in trajectory", id="CP-2"
        ),
        pytest.param(
            "completed",
            [],
            {"output": "x"},
            False,
            "No turn_end events found — session may have crashed mid-turn",
            id="CP-3",
        ),
        pytest.param(
            "completed",
            [end()],
            {"output": "x", "end_reason": "agent_timeout"},
            False,
            "Agent session ended early: agent_timeout",
            id="CP-4",
        ),
        pytest.param(
            "exit-success",
            [failure(), failure(), failure()],
            {"output": "x"},
            True,
            "Agent completed successfully",
            id="CP-5",
        ),
        pytest.param("exit-success", [end()], {"output": " \n"}, False, "Agent produced no output", id="CP-6"),
        pytest.param("completed", [failure()], {"output": "\t"}, False, "Agent produced no output", id="output first"),
        pytest.param(
            "completed",
            [end()],
            {"output": "x", "end_reason": "completed"},
            True,
            "Agent session completed successfully",
            id="end reason completed",
        ),
    ],
)
def test_table(keyword: str, events: list[Event], fields: dict[str, Any], passed: bool, evidence: str) -> None:
    result = grade(RECORDS[keyword], {}, trajectory(*events, **fields))
    assert (result.passed, result.score, result.evidence) == (passed, float(passed), evidence)
    assert (result.name, result.metadata) == (keyword, None)


def test_turn() -> None:
    recorded = trajectory(
        event("user_message", turn=0, content="0"),
        event("assistant_message", turn=0, content="done"),
        event("turn_end", turn=0, turnId="0"),
        event("user_message", turn=1, content="1"),
        event("error", turn=1, message="boom"),
        stimulus={"turns": ["0", "1"]},
        output="done",
    )
    assert grade(RECORDS["completed"], {}, recorded, turn=0).passed
    assert grade(RECORDS["completed"], {}, recorded, turn=1).evidence == "Agent produced no output"
    assert grade(RECORDS["completed"], {}, recorded).evidence == "1 error event(s) in trajectory"


@pytest.mark.parametrize("keyword", list(RECORDS))
def test_no_config_is_allowed(keyword: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], {"strict": True})
    assert str(caught.value) == f"Invalid config for {keyword}: unknown key 'strict'"
