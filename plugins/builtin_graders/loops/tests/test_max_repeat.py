"""`max-repeat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderResult, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_loops import plugin

RECORD: GraderSpec = next(record for record in plugin.vally_graders() if record.name == "max-repeat")
HOST = PluginHost.from_objects(plugin)
MakeCalls = Callable[..., list[Event]]
BY_NAME = {"max": 2, "match": "name"}
CYCLES = {**BY_NAME, "max_cycle_period": 2}


def run(config: dict[str, Any], events: list[Event], **facts: Any) -> GraderResult:
    return grade(RECORD, config, trajectory(*events), **facts)


@pytest.mark.parametrize(
    ("config", "written", "passed", "evidence"),
    [
        pytest.param(
            BY_NAME,
            ["bash", "bash", "view", "bash"],
            True,
            "No action repeated more than 2 time(s) in a row (longest run: 2)",
            id="MR-1",
        ),
        pytest.param(BY_NAME, ["bash"] * 3, False, "'bash' repeated 3 times in a row (max 2)", id="MR-2"),
        pytest.param(
            {"max": 1},
            [("bash", {}, "a"), ("bash", {}, "b")],
            True,
            "No action repeated more than 1 time(s) in a row (longest run: 1)",
            id="MR-3",
        ),
        pytest.param(
            {"max": 1, "match": "name-args"},
            [("bash", {"a": 1, "b": 2}), ("bash", {"b": 2, "a": 1})],
            False,
            "'bash' repeated 2 times in a row (max 1)",
            id="MR-4",
        ),
        pytest.param(
            {**BY_NAME, "tools": ["^bash$"]},
            ["bash", "view", "bash", "view", "bash"],
            False,
            "'bash' repeated 3 times in a row (max 2)",
            id="MR-5",
        ),
        pytest.param(
            CYCLES,
            ["A", "B"] * 3,
            False,
            "Cycle of 2 actions ('A', 'B') repeated 3 times in a row (max 2)",
            id="MR-6",
        ),
        pytest.param(
            CYCLES,
            ["A", "B", "A", "B", "A"],
            True,
            "No action repeated more than 2 time(s) in a row (longest run: 2)",
            id="MR-7",
        ),
        pytest.param(
            {"max": 1}, [], True, "No action repeated more than 1 time(s) in a row (longest run: 0)", id="MR-8"
        ),
    ],
)
def test_table(calls: MakeCalls, config: dict[str, Any], written: list[Any], passed: bool, evidence: str) -> None:
    result = run(config, calls(*written))
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)


@pytest.mark.parametrize(
    ("match", "first", "second", "equal"),
    [
        ("observation", ("t", {"a": 1}, "x"), ("t", {"a": 2}, "x"), True),
        ("observation", ("t", {}, {"k": 1}), ("t", {}, {"k": 1.0}), True),
        ("observation", ("t", {}, "x"), ("u", {}, "x"), False),
        ("observation", ("t", {}), ("t", {}), False),
        ("observation", ("t", {}, "x"), ("t", {}), False),
        ("name", ("t", {}), ("t", {"a": 1}), True),
        ("name", ("t", {}), ("T", {}), False),
        ("name-args", ("t",), ("t", {}), True),
        ("name-args", ("t", {"n": 1}), ("t", {"n": 1.0}), True),
        ("name-args", ("t", {"n": 1}), ("t", {"n": True}), False),
        ("name-args", ("t", {"n": [1, 2]}), ("t", {"n": [2, 1]}), False),
        (
            "name-args",
            ("t", {"n": {"a": 1, "b": [{"c": 1, "d": 2}]}}),
            ("t", {"n": {"b": [{"d": 2, "c": 1}], "a": 1}}),
            True,
        ),
        ("name-args", ("t", {"n": 1}), ("u", {"n": 1}), False),
        ("name-args", ("t", "x"), ("t", "x"), True),
        ("name-args", ("t", {"n": float("inf")}), ("t", {"n": float("inf")}), True),
    ],
)
def test_what_makes_calls_equal(calls: MakeCalls, match: str, first: Any, second: Any, equal: bool) -> None:
    assert run({"max": 1, "match": match}, calls(first, second)).passed is not equal


def test_deeply_nested_arguments(calls: MakeCalls) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert not run({"max": 1, "match": "name-args"}, calls(("t", {"n": deep}), ("t", {"n": deep}))).passed


@pytest.mark.parametrize(
    ("config", "names", "found"),
    [
        ({"max": 1, "max_cycle_period": 1}, "ABAB", (1, 1, ["A"], 0)),
        ({"max": 1, "max_cycle_period": 2}, "XABAB", (2, 2, ["A", "B"], 1)),
        ({"max": 5, "max_cycle_period": 3}, "AAXABCABCABC", (3, 3, ["A", "B", "C"], 3)),
        ({"max": 1, "max_cycle_period": 3}, "AABCABC", (2, 1, ["A"], 0)),
        ({"max": 1, "max_cycle_period": 2}, "AABBB", (3, 1, ["B"], 2)),
        ({"max": 5, "max_cycle_period": 4}, "AAAA", (4, 1, ["A"], 0)),
        ({"max": 5, "max_cycle_period": 4}, "ABABABAB", (4, 2, ["A", "B"], 0)),
        ({"max": 5, "max_cycle_period": 10}, "ABAC", (1, 1, ["A"], 0)),
        ({"max": 1, "max_cycle_period": 2}, "ABABXCDCD", (2, 2, ["A", "B"], 0)),
        ({"max": 1, "max_cycle_period": 2}, "ABABXCDCDC", (2, 2, ["C", "D"], 5)),
        ({"max": 1, "max_cycle_period": 10}, "ABCDEFGHIJ" * 2, (2, 10, list("ABCDEFGHIJ"), 0)),
        ({"max": 2, "max_cycle_period": 10, "tools": "[AB]"}, "CABCCABAB", (3, 2, ["A", "B"], 1)),
        ({"max": 1, "max_cycle_period": 10}, "", (0, None, [], None)),
    ],
)
def test_which_stretch_is_reported(
    calls: MakeCalls, config: dict[str, Any], names: str, found: tuple[int, int | None, list[str], int | None]
) -> None:
    result = run({"match": "name", **config}, calls(*names))
    run_length, period, tools, first = found
    assert result.metadata == {
        "longestRun": run_length,
        "max": config["max"],
        "match": "name",
        "period": period,
        "tools": tools,
        "firstCall": first,
    }
    assert result.passed is (run_length <= config["max"])


def test_messages_do_not_interrupt_a_run(calls: MakeCalls) -> None:
    events = [*calls("a"), event("assistant_message", content="again"), *calls("a")]
    assert not run({"max": 1, "match": "name"}, events).passed


def test_agents_and_turns_have_streams_of_their_own(calls: MakeCalls) -> None:
    config = {"max": 1, "match": "name"}
    assert run(config, [*calls("a"), *calls("a", agent_id="1"), *calls("a", agent_id="2")]).passed
    split = [*calls("a", agent_id="1"), *calls("b"), *calls("a", agent_id="1")]
    assert run(config, split).evidence == "'a' repeated 2 times in a row (max 1)"
    turns = [
        event("user_message", turn=0, content="1"),
        *calls("a", turn=0),
        event("user_message", turn=1, content="2"),
        *calls("a", turn=1),
    ]
    two = trajectory(*turns, stimulus={"turns": ["1", "2"]})
    assert grade(RECORD, config, two).passed
    one = trajectory(*turns, stimulus={"prompt": "1"})
    assert not grade(RECORD, config, one).passed
    unmarked = [item.model_copy(update={"turn": None}) for item in turns]
    assert grade(RECORD, config, trajectory(*unmarked, stimulus={"turns": ["1", "2"]})).passed
    assert not grade(RECORD, config, trajectory(*unmarked, stimulus={"turns": ["1", "2", "3"]})).passed


def test_turn_and_scope(calls: MakeCalls) -> None:
    recorded = trajectory(
        *calls("x", turn=0), *calls("a", "a", turn=1), *calls("b", "b", "b", turn=1, agent_id="1"),
        stimulus={"turns": ["1", "2"]},
    )  # fmt: skip
    evidence = {
        facts: grade(RECORD, {"max": 1, "match": "name"}, recorded, turn=facts[0], scope=facts[1]).evidence
        for facts in ((0, None), (1, "main"), (None, "subagents"), (None, "nobody"))
    }
    assert evidence == {
        (0, None): "No action repeated more than 1 time(s) in a row (longest run: 1)",
        (1, "main"): "'a' repeated 2 times in a row (max 1)",
        (None, "subagents"): "'b' repeated 3 times in a row (max 1)",
        (None, "nobody"): "No action repeated more than 1 time(s) in a row (longest run: 0)",
    }


def test_an_invalid_pattern_fails(calls: MakeCalls) -> None:
    result = run({"max": 1, "tools": ["a", "b("]}, calls("a"))
    assert (result.passed, result.status) == (False, None)
    assert result.evidence.startswith("Invalid regex pattern: b(. Error: ")


@pytest.mark.parametrize(
    ("config", "name"), [({"max": 3}, "max-repeat 3"), ({"max": 3, "tools": ["a", "b"]}, "max-repeat 3 a, b")]
)
def test_names_and_absence(config: dict[str, Any], name: str) -> None:
    grader, parsed = HOST.create(RECORD), HOST.parse_config(RECORD, config)
    assert run(config, []).name == grader.default_name(parsed) == name
    assert grader.asserts_absence(parsed) is True


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'max' is required"),
        ({"max": 0}, "'max' must be at least 1"),
        ({"max": 1.0}, "'max' must be an integer"),
        ({"max": 1, "match": "args"}, "'match' must be 'observation', 'name' or 'name-args'"),
        ({"max": 1, "tools": []}, "'tools' must not be empty"),
        ({"max": 1, "max_cycle_period": 0}, "'max_cycle_period' must be at least 1"),
        ({"max": 1, "max_cycle_period": 11}, "'max_cycle_period' must be at most 10"),
        ({"max": 1, "should_loop": True}, "unknown key 'should_loop'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for max-repeat: {problem}"
