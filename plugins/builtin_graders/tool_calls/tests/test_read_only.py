"""Which calls only read."""

from __future__ import annotations

from typing import Any

import pytest

from vally.testing import event, grade, trajectory
from vally_grader_tool_calls import plugin

RECORD = next(record for record in plugin.vally_graders() if record.name == "tool-calls")


def is_read_only(name: str, arguments: Any = None, **data: Any) -> bool:
    """What both conditions say; they must be each other's opposite."""
    recorded = trajectory(event("tool_call", tool_name=name, arguments=arguments or {}, **data))
    reads, writes = (
        grade(RECORD, {"required": [{"name": ".", key: True}]}, recorded).passed for key in ("read_only", "write_only")
    )
    assert reads is not writes
    return reads


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("view", True),
        ("View", True),
        ("viewFile", True),
        ("viewer", False),
        ("read_file", True),
        ("read-file", True),
        ("readFile", True),
        ("ready", False),
        ("mcp__docs__search", True),
        ("mcp__search__write", False),
        ("server/list.items", False),
        ("server.list_items", True),
        ("ns:get", True),
        ("web_search", True),
        ("web_fetch_page", True),
        ("web", False),
        ("report_intent", True),
        ("listen", False),
        ("lsof", False),
        ("create", False),
        ("edit_view", False),
    ],
)
def test_names(name: str, expected: bool) -> None:
    assert is_read_only(name) is expected


@pytest.mark.parametrize(("name", "recorded"), [("view", False), ("create", True), ("bash", True)])
def test_what_was_recorded_counts_most(name: str, recorded: bool) -> None:
    assert is_read_only(name, read_only=recorded) is recorded


@pytest.mark.parametrize("recorded", [None, "true", 1])
def test_only_a_boolean_is_recorded(recorded: Any) -> None:
    assert not is_read_only("create", read_only=recorded)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"command": "view"}, True), ({"command": "create"}, False), ({}, False), ({"command": ["view"]}, False)],
)
@pytest.mark.parametrize("name", ["str_replace_editor", "x/STR_REPLACE_BASED_EDIT_TOOL"])
def test_editors(name: str, arguments: dict[str, Any], expected: bool) -> None:
    assert is_read_only(name, arguments) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls && git status", True),
        ("cat a | grep b; wc -l <c || true", True),
        ("ls\npwd\n", True),
        ("  ls  &", True),
        ("lsof", False),
        ("ls && rm x", False),
        ("rm x", False),
        ("", False),
        (" ; ", False),
        ("echo hi > file", False),
        ("echo hi >> file", False),
        ("ls 2>&1", True),
        ("ls 2>/dev/null", True),
        ("ls >/dev/null", True),
        ("ls >/dev/null.txt", False),
        ("ls > /dev/null", False),
        ("echo `rm x`", False),
        ("echo $(rm x)", False),
        ("diff <(a) b", False),
        ("git", False),
        ("git push", False),
        ("git  log --oneline", True),
        ("git diff --output=x", False),
        ("git ls-files", True),
        ("find . -name x", True),
        ("find . -delete", False),
        ("find . '-exec' rm {}", False),
        ("find . -okdir rm", False),
        ("sort -k2 a", True),
        ("sort -uo a a", False),
        ("sort --output=a a", False),
        ("tree -L 2", True),
        ("tree -o a", False),
        ("grep -o x", True),
        ("ls -o", True),
        ("Get-Content a", True),
        ("get-content a", False),
    ],
)
@pytest.mark.parametrize("name", ["bash", "mcp__x__Run_In_Terminal"])
def test_commands(name: str, command: str, expected: bool) -> None:
    assert is_read_only(name, {"command": command}) is expected


@pytest.mark.parametrize("arguments", [{"command": 5}, {"cmd": "ls"}, ["ls"]])
def test_shells_without_a_command(arguments: Any) -> None:
    assert not is_read_only("sh", arguments)
