"""`skill-invocation` and `system-event`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import Event, GraderSpec, PluginHost, read_eval_spec
from vally.testing import ProjectBuilder, event, grade, trajectory
from vally_grader_tool_calls import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
HOST = PluginHost.from_objects(plugin)


def skill(name: Any, **data: Any) -> Event:
    return event("skill_activation", name=name, **data)


def system(name: Any, **data: Any) -> Event:
    return event("system", event_type=name, **data)


@pytest.mark.parametrize(
    ("keyword", "config", "events", "passed", "evidence"),
    [
        pytest.param(
            "skill-invocation",
            {"required": ["test-writer"]},
            [skill("test-writer"), skill("test-writer")],
            True,
            "All required skills invoked: test-writer",
            id="SK-1",
        ),
        pytest.param(
            "skill-invocation",
            {"required": ["a", "b"]},
            [skill("a")],
            False,
            "Required skills NOT invoked: b",
            id="SK-2",
        ),
        pytest.param("skill-invocation", {"disallowed": ["x"]}, [], True, "No disallowed skills invoked", id="SK-3"),
        pytest.param(
            "skill-invocation",
            {"required": ["a"], "disallowed": ["x"]},
            [skill("x")],
            False,
            "Required skills NOT invoked: a; Disallowed skills invoked: x",
            id="SK-4",
        ),
        pytest.param(
            "skill-invocation", {"required": ["A"]}, [skill("a")], False, "Required skills NOT invoked: A", id="SK-5"
        ),
        pytest.param(
            "skill-invocation",
            {"required": "a", "disallowed": "x"},
            [skill("a", plugin_name="x")],
            True,
            "All required skills invoked: a; No disallowed skills invoked",
            id="single strings",
        ),
        pytest.param(
            "skill-invocation",
            {"required": ["a", "b"], "disallowed": ["x"]},
            [skill("a"), skill("b"), skill("x")],
            False,
            "Disallowed skills invoked: x",
            id="only what failed",
        ),
        pytest.param(
            "skill-invocation",
            {"disallowed": ["*"]},
            [skill("b"), skill("a"), skill("b")],
            False,
            "Disallowed skills invoked: b, a",
            id="any skill",
        ),
        pytest.param(
            "skill-invocation", {"disallowed": ["*"]}, [skill(7)], True, "No disallowed skills invoked", id="no skill"
        ),
        pytest.param(
            "system-event", {"disallowed": ["truncation"]}, [], True, "No disallowed system events observed", id="SE-1"
        ),
        pytest.param(
            "system-event",
            {"required": ["compaction"]},
            [system("compaction")],
            True,
            "All required system events observed: compaction",
            id="SE-2",
        ),
        pytest.param(
            "system-event",
            {"required": ["compaction"]},
            [event("custom", event_type="compaction")],
            False,
            "Required system events NOT observed: compaction",
            id="SE-3",
        ),
        pytest.param(
            "system-event",
            {"disallowed": ["truncation", "truncation"]},
            [system("truncation"), system("truncation")],
            False,
            "Disallowed system events observed: truncation",
            id="SE-4",
        ),
        pytest.param(
            "system-event",
            {"disallowed": ["*"]},
            [system("compaction")],
            True,
            "No disallowed system events observed",
            id="a star is a name",
        ),
    ],
)
def test_table(keyword: str, config: dict[str, Any], events: list[Event], passed: bool, evidence: str) -> None:
    result = grade(RECORDS[keyword], config, trajectory(*events))
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)


@pytest.mark.parametrize(
    ("keyword", "config", "message"),
    [
        pytest.param(
            "skill-invocation",
            {"required": ["a"], "disallowed": ["a"]},
            "Invalid config for skill-invocation: 'a' is both required and disallowed",
            id="SK-6",
        ),
        pytest.param(
            "system-event",
            {},
            "Invalid config for system-event: provide at least one of 'required' or 'disallowed'",
            id="SE-5",
        ),
        pytest.param(
            "system-event",
            {"required": [""]},
            "Invalid config for system-event: 'required' must not hold an empty name",
            id="empty name",
        ),
        pytest.param(
            "skill-invocation",
            {"required": [1]},
            "Invalid config for skill-invocation: 'required[0]' must be a string",
            id="not a name",
        ),
        pytest.param(
            "skill-invocation",
            {"any": ["a"], "required": ["a"]},
            "Invalid config for skill-invocation: unknown key 'any'",
            id="unknown key",
        ),
    ],
)
def test_load_errors(tmp_path: Path, keyword: str, config: dict[str, Any], message: str) -> None:
    path = ProjectBuilder(tmp_path).eval("e", [{"graders": [{"type": keyword, "config": config}]}])
    found = read_eval_spec(path, host=HOST).diagnostics
    assert [(item.code, item.message) for item in found if item.level == "error"] == [
        ("invalid-grader-config", message)
    ]


@pytest.mark.parametrize(
    ("keyword", "make", "noun", "happened"),
    [("skill-invocation", skill, "Skill", "invoked"), ("system-event", system, "System event", "observed")],
)
def test_details_and_metadata(keyword: str, make: Any, noun: str, happened: str) -> None:
    config = {"required": ["a", "b", "a"], "disallowed": ["c", "d"]}
    result = grade(RECORDS[keyword], config, trajectory(make("c"), make("a"), make("a"), make("e")))
    assert [(item.name, item.passed, item.evidence) for item in result.details or ()] == [
        ("required a", True, f"{noun} 'a' {happened} 2 time(s)"),
        ("required b", False, f"{noun} 'b' NOT {happened}"),
        ("disallowed c", False, f"{noun} 'c' {happened} 1 time(s)"),
        ("disallowed d", True, f"{noun} 'd' NOT {happened}"),
    ]
    assert result.metadata == {
        "required": ["a", "b"],
        "disallowed": ["c", "d"],
        happened: ["c", "a", "e"],
        "missing": ["b"],
        "forbidden": ["c"],
    }
    assert (result.name, result.grader_type) == (f"{keyword} a, b; not c, d", keyword)


def test_any_skill_in_details() -> None:
    result = grade(RECORDS["skill-invocation"], {"disallowed": ["*"]}, trajectory(skill("b"), skill("a")))
    assert [(item.name, item.evidence) for item in result.details or ()] == [
        ("disallowed *", "Skill '*' invoked 2 time(s)")
    ]
    assert result.metadata is not None
    assert result.metadata["forbidden"] == ["b", "a"]


@pytest.mark.parametrize("keyword", ["skill-invocation", "system-event"])
@pytest.mark.parametrize(
    ("config", "target", "absence"),
    [
        ({"required": ["a", "b"]}, "a, b", False),
        ({"disallowed": ["a", "b"]}, "not a, b", True),
        ({"required": ["a"], "disallowed": ["b"]}, "a; not b", False),
    ],
)
def test_names_and_absence(keyword: str, config: dict[str, Any], target: str, absence: bool) -> None:
    record = RECORDS[keyword]
    grader, parsed = HOST.create(record), HOST.parse_config(record, config)
    assert grader.default_name(parsed) == f"{keyword} {target}"
    assert grader.asserts_absence(parsed) is absence


def test_turn_and_scope() -> None:
    record = RECORDS["skill-invocation"]
    recorded = trajectory(
        event("user_message", turn=0, content="1"),
        skill("a", turn=0),
        event("user_message", turn=1, content="2"),
        skill("b", turn=1, agent_id="x", agent_name="helper"),
        stimulus={"turns": ["1", "2"]},
    )
    assert grade(record, {"required": ["a"]}, recorded, turn=0).passed
    assert not grade(record, {"required": ["a"]}, recorded, turn=1).passed
    assert grade(record, {"required": ["b"]}, recorded, scope="helper").passed
    assert grade(record, {"disallowed": ["b"]}, recorded, scope="main").passed
    assert grade(record, {"disallowed": ["b"]}, recorded, scope="nobody").passed
    assert grade(record, {"required": ["b"]}, recorded, scope="nobody").evidence == (
        "No events in agent scope 'nobody'"
    )


def test_the_older_name_is_suggested(tmp_path: Path) -> None:
    path = ProjectBuilder(tmp_path).eval("e", [{"graders": [{"type": "skill-activation"}]}])
    found = [item for item in read_eval_spec(path, host=HOST).diagnostics if item.code == "unknown-grader-type"]
    assert [item.hint for item in found] == ["did you mean 'skill-invocation'?"]
