"""`assistant-contains-tool-output`."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_output import plugin

KEYWORD = "assistant-contains-tool-output"
RECORD: GraderSpec = {record.name: record for record in plugin.vally_graders()}[KEYWORD]
GET_ID = {"tools": ["^get_id$"], "pattern": r"id=(\w+)"}


def says(content: str) -> Event:
    return event("assistant_message", content=content)


def returns(tool: str, result: Any, **data: Any) -> Event:
    return event("tool_result", toolName=tool, toolCallId="c1", success=True, result=result, **data)


@pytest.mark.parametrize(
    ("config", "events", "passed", "evidence", "captured", "value"),
    [
        pytest.param(
            GET_ID,
            [returns("get_id", "id=a17"), says("Your id is a17")],
            True,
            "'a17' from get_id output found in a later assistant message",
            1,
            "a17",
            id="AT-1",
        ),
        pytest.param(
            GET_ID,
            [says("a17"), returns("get_id", "id=a17")],
            False,
            "'a17' from get_id output NOT found in any later assistant message",
            1,
            "a17",
            id="AT-2",
        ),
        pytest.param(
            GET_ID,
            [returns("get_id", "none")],
            False,
            r"Pattern /id=(\w+)/ not found in any result of tools matching /^get_id$/",
            0,
            None,
            id="AT-3",
        ),
        pytest.param(
            GET_ID,
            [returns("bash", "id=a17"), says("a17")],
            False,
            "No results from tools matching /^get_id$/",
            0,
            None,
            id="AT-4",
        ),
        pytest.param(
            {"tools": ["get"], "pattern": r"\d{4}"},
            [returns("get", "1111"), returns("get", "2222"), says("2222")],
            True,
            "'2222' from get output found in a later assistant message",
            2,
            "2222",
            id="AT-5",
        ),
        pytest.param(
            {"tools": ["get"], "pattern": r'k"?:"?(\w+)'},
            [returns("get", {"k": "v9"}), says("v9")],
            True,
            "'v9' from get output found in a later assistant message",
            1,
            "v9",
            id="AT-6",
        ),
        pytest.param(
            {"tools": "x|get", "pattern": "v(9)?"},
            [returns("get", "v"), says("v")],
            True,
            "'v' from get output found in a later assistant message",
            1,
            "v",
            id="group without part, one string",
        ),
        pytest.param(
            {"tools": ["a", "get"], "pattern": "v()"},
            [returns("get", "v"), says("v")],
            False,
            "Pattern /v()/ not found in any result of tools matching /a/, /get/",
            0,
            None,
            id="empty capture",
        ),
        pytest.param(
            {"tools": ["get"], "pattern": "v."},
            [returns("get", "v1", errorCode="E"), says("V1 "), returns("get", "v2")],
            False,
            "'v2' from get output NOT found in any later assistant message",
            2,
            "v2",
            id="last captured value",
        ),
        pytest.param(
            {"tools": ["get"], "pattern": "v."},
            [
                event("tool_call", toolName="get", toolCallId="c1"),
                event("tool_result", toolCallId="c1", result="v1"),
                says("v1"),
            ],
            True,
            "'v1' from get output found in a later assistant message",
            1,
            "v1",
            id="name from the call",
        ),
        pytest.param(
            {"tools": ["get"], "pattern": "."},
            [event("tool_result", toolName="get", toolCallId="c1"), says("x")],
            False,
            "Pattern /./ not found in any result of tools matching /get/",
            0,
            None,
            id="no result value",
        ),
    ],
)
def test_table(
    config: dict[str, Any], events: list[Event], passed: bool, evidence: str, captured: int, value: str | None
) -> None:
    result = grade(RECORD, config, trajectory(*events))
    assert (result.passed, result.evidence) == (passed, evidence)
    assert result.metadata == {"captured": captured, "value": value}
    assert result.name == f"{KEYWORD} {config['pattern']}"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"pattern": "x"}, "'tools' is required"),
        ({"tools": [], "pattern": "x"}, "'tools' must not be empty"),
        ({"tools": ["a"]}, "'pattern' is required"),
        ({"tools": [1], "pattern": "x"}, "'tools[0]' must be a string"),
        ({"tools": 1, "pattern": "x"}, "'tools' must be a list"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for {KEYWORD}: {problem}"


def test_the_first_invalid_pattern_is_reported() -> None:
    result = grade(RECORD, {"tools": ["a", "("], "pattern": "["}, trajectory())
    assert result.evidence.startswith("Invalid regex pattern: (. Error: ")
