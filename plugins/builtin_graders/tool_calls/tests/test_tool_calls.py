"""`tool-calls`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderResult, GraderSpec, PluginHost, read_eval_spec
from vally.testing import ProjectBuilder, event, grade, trajectory
from vally_grader_tool_calls import plugin

RECORD: GraderSpec = next(record for record in plugin.vally_graders() if record.name == "tool-calls")
HOST = PluginHost.from_objects(plugin)


def call(name: str, arguments: Any = None, **data: Any) -> Event:
    given = {} if arguments is None else {"arguments": arguments}
    return event("tool_call", tool_name=name, **given, **data)


def result(name: str, value: Any = None, **data: Any) -> Event:
    return event("tool_result", tool_name=name, success=True, **({} if value is None else {"result": value}), **data)


def run(config: dict[str, Any], *events: Event, **facts: Any) -> GraderResult:
    return grade(RECORD, config, trajectory(*events), **facts)


NPM = {"required": ["create", {"name": "bash", "command": "npm test"}]}
T1, T2 = {"turn_id": "t1"}, {"turn_id": "t2"}


@pytest.mark.parametrize(
    ("config", "events", "passed", "evidence"),
    [
        pytest.param(
            NPM,
            [call("create"), call("bash", {"command": "npm test -- -q"})],
            True,
            "All 2 tool call checks passed",
            id="TL-1",
        ),
        pytest.param(
            NPM,
            [call("create")],
            False,
            "1 of 2 tool call checks failed: Required tool 'bash command=/npm test/' NOT called",
            id="TL-2",
        ),
        pytest.param(
            {"disallowed": [{"name": "view", "path": r"secret\.env$"}]},
            [call("view", {"path": "a/secret.env"})],
            False,
            r"1 of 1 tool call checks failed: Disallowed tool 'view path=/secret\.env$/' called 1 time(s) (first: "
            "'view')",
            id="TL-3",
        ),
        pytest.param({"disallowed": ["view"]}, [], True, "All 1 tool call checks passed", id="TL-4"),
        pytest.param(
            {"sequence": ["validate", "create"]},
            [call("create"), call("validate")],
            False,
            "1 of 1 tool call checks failed: Sequence broken at entry 2 of 2: no 'create' after 'validate'",
            id="TL-5",
        ),
        pytest.param(
            {"parallel": ["grep", "view"]},
            [call("grep", **T1), call("view", **T1)],
            True,
            "All 1 tool call checks passed",
            id="TL-6",
        ),
        pytest.param(
            {"parallel": ["grep", "view"]},
            [call("grep", **T1), result("grep", "x"), call("view", **T2)],
            False,
            "1 of 1 tool call checks failed: No batch contains all of: grep, view",
            id="TL-7",
        ),
        pytest.param(
            {"required": [{"name": "search", "pattern": '"limit":10'}]},
            [call("search", {"q": "x", "opts": {"limit": 10}})],
            True,
            "All 1 tool call checks passed",
            id="TL-8",
        ),
        pytest.param(
            {"required": [{"name": "submit", "final": True}]},
            [call("submit"), call("view")],
            False,
            "1 of 1 tool call checks failed: Required tool 'submit' is not the final tool call (final call: 'view')",
            id="TL-9",
        ),
        pytest.param(
            {"required": [{"name": "q", "args": {"n": "5"}}]},
            [call("q", {"n": 5})],
            False,
            "1 of 1 tool call checks failed: Required tool 'q args.n=/5/' NOT called",
            id="TL-10",
        ),
        pytest.param(
            {"required": [{"name": "^view$", "before_step": 1}]},
            [call("bash", **T1), call("view", **T2)],
            False,
            "1 of 1 tool call checks failed: Required tool '^view$' NOT called before step 1",
            id="TL-11",
        ),
        pytest.param(
            {"disallowed": [{"name": ".*", "write_only": True}]},
            [call("bash", {"command": "ls && git status"}), call("view")],
            True,
            "All 1 tool call checks passed",
            id="TL-12",
        ),
    ],
)
def test_table(config: dict[str, Any], events: list[Event], passed: bool, evidence: str) -> None:
    found = run(config, *events)
    assert (found.passed, found.score, found.status, found.evidence) == (passed, float(passed), None, evidence)


@pytest.mark.parametrize(
    ("entry", "passed", "evidence"),
    [
        ("view", True, "Required tool 'view' called 2 time(s)"),
        ({"name": "view", "min_count": 2}, True, "Required tool 'view' called 2 time(s)"),
        ({"name": "view", "min_count": 3}, False, "Required tool 'view' called 2 time(s), expected at least 3"),
        ({"name": "rm", "min_count": 3}, False, "Required tool 'rm' NOT called"),
        ({"name": "view", "at_step": 1}, True, "Required tool 'view' called 1 time(s)"),
        ({"name": "bash", "at_step": 1}, False, "Required tool 'bash' NOT called at step 1"),
        ({"name": "bash", "at_step": 7}, False, "Required tool 'bash' NOT called at step 7"),
        ({"name": "view", "before_step": 2}, True, "Required tool 'view' called 2 time(s)"),
        ({"name": "submit", "at_step": 0, "before_step": 2}, False, "Required tool 'submit' NOT called at step 0"),
        ({"name": "^sub", "final": True}, True, "Required tool '^sub' called 1 time(s)"),
        (
            {"name": "view", "final": True},
            False,
            "Required tool 'view' is not the final tool call (final call: 'submit')",
        ),
    ],
    ids=str,
)
def test_required_calls(entry: Any, passed: bool, evidence: str) -> None:
    events = [call("bash", **T1), call("view", **T1), call("view", **T2), call("submit", turn_id="t3")]
    found = run({"required": [entry]}, *events)
    assert found.details is not None
    assert [(detail.name, detail.passed, detail.evidence) for detail in found.details] == [
        ("required[0]", passed, evidence)
    ]


COMMAND = {"command": "npm test\n--all", "path": "src/a.py", "count": 3, "opts": {"deep": [1.0, "é"]}}


@pytest.mark.parametrize(
    ("conditions", "arguments", "matches"),
    [
        ({"command": "npm", "path": "^src/"}, COMMAND, True),
        ({"command": "npm", "path": "^lib/"}, COMMAND, False),
        ({"command": r"test\n--all$"}, COMMAND, True),
        ({"command": "npm"}, {"command": ["npm"]}, False),
        ({"command": "npm"}, "npm", False),
        ({"command": "npm"}, None, False),
        ({"args": {"command": "npm", "path": "py$"}}, COMMAND, True),
        ({"args": {"command": "npm", "absent": "."}}, COMMAND, False),
        ({"args": {"opts": "deep"}}, COMMAND, False),
        ({"command": "test", "args": {"command": "npm"}}, COMMAND, True),
        ({"pattern": r'"count":3,"opts":\{"deep":\[1,"é"\]\}'}, COMMAND, True),
        ({"pattern": r"^\{\}$"}, None, True),
        ({"pattern": r'^"npm"$'}, "npm", True),
        ({"result": "^ok"}, {}, True),
        ({"result": "^nothing"}, {}, False),
    ],
)
def test_conditions(conditions: dict[str, Any], arguments: Any, matches: bool) -> None:
    events = [call("router/run", arguments, tool_call_id="1"), result("router/run", "ok then", tool_call_id="1")]
    assert run({"required": [{"name": "run$", **conditions}]}, *events).passed is matches


@pytest.mark.parametrize(("value", "matches"), [({"b": [1.0]}, True), ("", False), (None, False)])
def test_results_of_any_kind(value: Any, matches: bool) -> None:
    events = [call("q", tool_call_id="1"), result("q", value, tool_call_id="1")]
    assert run({"required": [{"name": "q", "result": r'^\{"b":\[1\]\}$'}]}, *events).passed is matches


def test_a_call_without_result_has_none_to_match() -> None:
    assert not run({"required": [{"name": "q", "result": ".?"}]}, call("q")).passed


def test_labels_name_every_condition() -> None:
    entry = {
        "name": "x",
        "write_only": True,
        "result": "r",
        "pattern": "p",
        "args": {"k": "1", "a": "2"},
        "path": "b",
        "command": "c",
    }
    found = run({"disallowed": [entry, {"name": "y", "read_only": True}]})
    assert [detail.evidence for detail in found.details or ()] == [
        "Disallowed tool 'x command=/c/ path=/b/ args.k=/1/ args.a=/2/ pattern=/p/ result=/r/ write_only' not called",
        "Disallowed tool 'y read_only' not called",
    ]


def test_checks_in_order_with_metadata() -> None:
    config = {
        "required": [{"name": "a", "min_count": 2}, "b"],
        "disallowed": ["^a", "c"],
        "sequence": ["a", "z"],
        "parallel": ["a", "a"],
    }
    events = [call("a", **T1), call("c", **T1), call("a", turn_id="t2"), call("a", turn_id="t2")]
    found = run(config, *events)
    assert [(detail.name, detail.passed) for detail in found.details or ()] == [
        ("required[0]", True),
        ("required[1]", False),
        ("disallowed[0]", False),
        ("disallowed[1]", False),
        ("sequence", False),
        ("parallel", True),
    ]
    assert found.metadata == {
        "callCount": 4,
        "stepCount": 2,
        "checkCount": 6,
        "failedChecks": ["required[1]", "disallowed[0]", "disallowed[1]", "sequence"],
    }
    assert found.evidence == (
        "4 of 6 tool call checks failed: Required tool 'b' NOT called; Disallowed tool '^a' called 3 time(s) (first: "
        "'a'); Disallowed tool 'c' called 1 time(s) (first: 'c'); Sequence broken at entry 2 of 2: no 'z' after 'a'"
    )
    assert {detail.grader_type for detail in found.details or ()} == {"tool-calls"}


@pytest.mark.parametrize(
    ("sequence", "names", "evidence"),
    [
        (["a", "b"], ["a", "x", "b"], "Sequence found: a → b"),
        (["a", "a"], ["a", "b", "a"], "Sequence found: a → a"),
        (["a", "a"], ["a", "b"], "Sequence broken at entry 2 of 2: no 'a' after 'a'"),
        (["z", "a"], ["a"], "Sequence broken at entry 1 of 2: no 'z'"),
        (["[ab]", "b"], ["b", "a", "b"], "Sequence found: [ab] → b"),
    ],
)
def test_sequences(sequence: list[str], names: list[str], evidence: str) -> None:
    found = run({"sequence": sequence}, *(call(name) for name in names))
    assert found.details is not None
    assert (found.details[0].name, found.details[0].evidence) == ("sequence", evidence)
    assert found.passed is evidence.startswith("Sequence found")


@pytest.mark.parametrize(
    ("wanted", "events", "passed"),
    [
        (["a|b", "a"], [call("a"), call("b")], True),
        (["a", "a|b"], [call("a"), call("b")], True),
        (["a", "a"], [call("a"), call("b")], False),
        (["a|b|c", "a|b", "a"], [call("a"), call("b"), call("c")], True),
        (["a|b", "a|b", "a|b"], [call("a"), call("b"), call("c")], False),
        (["a", "b"], [call("a"), call("x"), call("b")], True),
        (["a", "b"], [call("a"), event("assistant_message", content="so"), call("b")], False),
        (["a", "b"], [call("a", agent_id="1"), call("b", agent_id="2")], False),
    ],
)
def test_parallel_calls(wanted: list[str], events: list[Event], passed: bool) -> None:
    shown = ", ".join(wanted)
    found = run({"parallel": wanted}, *events)
    assert found.details is not None
    assert (found.passed, found.details[0].name) == (passed, "parallel")
    assert found.details[0].evidence == (
        f"Parallel calls found in one batch: {shown}" if passed else f"No batch contains all of: {shown}"
    )


def test_simulated_calls_count() -> None:
    assert run({"required": ["a"]}, call("a", simulated=True)).passed


@pytest.mark.parametrize("name", ["required", "disallowed", "sequence", "parallel"])
def test_an_invalid_pattern_fails_before_anything_is_tried(name: str) -> None:
    found = run({"required": ["a"], name: ["a(", "b"]}, call("b"))
    assert (found.passed, found.status, found.details) == (False, None, None)
    assert found.evidence.startswith("Invalid regex pattern: a(. Error: ")


def test_turn_and_scope() -> None:
    recorded = trajectory(
        event("user_message", turn=0, content="1"),
        call("view", tool_call_id="1", turn=0),
        event("user_message", turn=1, content="2"),
        call("create", turn=1),
        result("view", "late", tool_call_id="1", turn=1),
        call("rm", turn=1, agent_id="a1", agent_name="reviewer"),
        stimulus={"turns": ["1", "2"]},
    )
    assert grade(RECORD, {"required": [{"name": "view", "result": "late"}]}, recorded, turn=0).passed
    assert not grade(RECORD, {"required": ["view"]}, recorded, turn=1).passed
    assert grade(RECORD, {"required": [{"name": "create", "at_step": 0}]}, recorded, turn=1).passed
    assert grade(RECORD, {"disallowed": ["rm"]}, recorded, scope="main").passed
    assert not grade(RECORD, {"disallowed": ["rm"]}, recorded, scope="reviewer").passed


@pytest.mark.parametrize(
    ("config", "passed", "evidence"),
    [
        pytest.param({"disallowed": ["rm"]}, True, "All 1 tool call checks passed", id="OR-6"),
        pytest.param({"required": ["rm"]}, False, "No events in agent scope 'reviewer'", id="required"),
    ],
)
def test_an_agent_that_did_nothing(config: dict[str, Any], passed: bool, evidence: str) -> None:
    found = run(config, call("ls"), scope="reviewer")
    assert (found.passed, found.evidence) == (passed, evidence)
    assert HOST.create(RECORD).asserts_absence(HOST.parse_config(RECORD, config)) is passed


@pytest.mark.parametrize(
    ("config", "name", "absence"),
    [
        ({"required": NPM["required"]}, "create, bash", False),
        ({"disallowed": ["a", {"name": "b", "path": "x"}]}, "not a, b", True),
        ({"sequence": ["a", "b"]}, "a > b", False),
        ({"parallel": ["a", "b"]}, "a & b", False),
        (
            {"required": ["a"], "disallowed": ["x"], "sequence": ["a", "b"], "parallel": ["c", "d"]},
            "a; not x; a > b; c & d",
            False,
        ),
        ({"disallowed": ["a"], "parallel": ["c", "d"]}, "not a; c & d", False),
    ],
)
def test_names_and_absence(config: dict[str, Any], name: str, absence: bool) -> None:
    grader, parsed = HOST.create(RECORD), HOST.parse_config(RECORD, config)
    assert run(config, call("x")).name == grader.default_name(parsed) == f"tool-calls {name}"
    assert grader.asserts_absence(parsed) is absence


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "provide at least one of 'required', 'disallowed', 'sequence' or 'parallel'"),
        ({"required": []}, "provide at least one of 'required', 'disallowed', 'sequence' or 'parallel'"),
        ({"required": "bash"}, "'required' must be a list"),
        ({"required": [3]}, "'required[0]' must be a string or a mapping"),
        ({"required": [{"command": "x"}]}, "'required[0].name' is required"),
        ({"required": ["a", {"name": "b", "cmd": "x"}]}, "unknown key 'required[1].cmd'"),
        ({"required": [{"name": "a", "args": {"n": 5}}]}, "'required[0].args.n' must be a string"),
        ({"required": [{"name": "a", "args": {}}]}, "'required[0].args' must not be empty"),
        ({"required": [{"name": "a", "min_count": 0}]}, "'required[0].min_count' must be at least 1"),
        ({"required": [{"name": "a", "at_step": -1}]}, "'required[0].at_step' must be at least 0"),
        ({"required": [{"name": "a", "before_step": 0}]}, "'required[0].before_step' must be at least 1"),
        (
            {"required": [{"name": "a", "at_step": 1, "before_step": 1}]},
            "'required[0].at_step' must be less than 'before_step'",
        ),
        (
            {"required": [{"name": "a", "final": True, "min_count": 2}]},
            "'required[0].final' excludes a 'min_count' above 1",
        ),
        (
            {"disallowed": [{"name": "a", "write_only": True, "read_only": True}]},
            "'disallowed[0].write_only' excludes 'read_only'",
        ),
        (
            {"disallowed": [{"name": "a", "min_count": 1}]},
            "'disallowed[0].min_count' is not allowed in 'disallowed'",
        ),
        (
            {"sequence": ["a", {"name": "a", "result": "x"}]},
            "'sequence[1].result' is not allowed in 'sequence'",
        ),
        ({"parallel": ["a", {"name": "a", "final": False}]}, "'parallel[1].final' is not allowed in 'parallel'"),
        ({"parallel": ["a"]}, "'parallel' must have at least two entries"),
        (
            {"required": ["b", {"name": "a", "min_count": 1}], "disallowed": ["a"]},
            "'required[1]' is also in 'disallowed': 'a'",
        ),
        ({"sequence": ["b", "a"], "disallowed": ["a"]}, "'sequence[1]' is also in 'disallowed': 'a'"),
        (
            {"parallel": [{"name": "a", "path": "x"}, "b"], "disallowed": [{"path": "x", "name": "a"}]},
            "'parallel[0]' is also in 'disallowed': 'a path=/x/'",
        ),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for tool-calls: {problem}"


@pytest.mark.parametrize("key", ["name", "command", "path", "pattern", "result"])
def test_patterns_are_checked_when_the_config_is_read(key: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"^Invalid config for tool-calls: Invalid regex pattern: \[x\. Error: "):
        HOST.parse_config(RECORD, {"required": [{"name": "a", key: "[x"}]})


def test_findings_point_at_the_entry(tmp_path: Path) -> None:
    text = """\
name: e
stimuli:
  - name: s
    prompt: p
    graders:
      - type: tool-calls
        config:
          sequence:
            - create
      - type: tool-calls
        config:
          disallowed:
            - rm
            - name: view
              at_step: 1
"""
    path = ProjectBuilder(tmp_path).file("eval.yaml", text)
    loaded = read_eval_spec(path, host=HOST)
    assert [(item.line, item.column, item.code, item.message) for item in loaded.diagnostics if item.line > 5] == [
        (9, 13, "suspicious-grader-config", "tool-calls: 'sequence' has only one entry, so it checks no order"),
        (
            15,
            24,
            "invalid-grader-config",
            "Invalid config for tool-calls: 'disallowed[1].at_step' is not allowed in 'disallowed'",
        ),
    ]
