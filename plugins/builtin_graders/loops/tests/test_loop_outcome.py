"""`loop-outcome`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_loops import plugin

RECORD: GraderSpec = next(record for record in plugin.vally_graders() if record.name == "loop-outcome")
HOST = PluginHost.from_objects(plugin)
MakeCalls = Callable[..., list[Event]]
SAME = ("bash", {"command": "ls"})
CAPPED = {"end_reason": "iteration_cap"}


@pytest.mark.parametrize(
    ("config", "written", "fields", "passed", "evidence"),
    [
        pytest.param(
            {"max_acceptable_retries": 2},
            [SAME] * 3,
            {},
            True,
            "No loop detected (most retries: 2, acceptable: 2); expected no loop",
            id="LO-1",
        ),
        pytest.param(
            {"max_acceptable_retries": 2},
            [SAME] * 4,
            {},
            False,
            "Loop detected: 'bash' retried 3 time(s) (acceptable: 2); expected no loop",
            id="LO-2",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "should_loop": True},
            [SAME] * 2,
            {},
            True,
            "Loop detected: 'bash' retried 1 time(s) (acceptable: 0); expected a loop",
            id="LO-3",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "should_loop": True},
            [],
            {},
            False,
            "No loop detected (most retries: 0, acceptable: 0); expected a loop",
            id="LO-4",
        ),
        pytest.param(
            {"max_acceptable_retries": 5},
            [SAME],
            CAPPED,
            False,
            "Loop detected: simulation iteration cap reached; expected no loop",
            id="LO-5",
        ),
        pytest.param(
            {"max_acceptable_retries": 1, "match": "name"},
            [("bash", {"a": 1}), ("bash", {"a": 2}), ("bash", {"a": 3})],
            {},
            False,
            "Loop detected: 'bash' retried 2 time(s) (acceptable: 1); expected no loop",
            id="LO-6",
        ),
        pytest.param(
            {"max_acceptable_retries": 1, "max_cycle_period": 2},
            ["A", "B"] * 3,
            {},
            False,
            "Loop detected: cycle of 2 actions ('A', 'B') retried 2 time(s) (acceptable: 1); expected no loop",
            id="cycle",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "should_loop": True},
            [SAME] * 2,
            CAPPED,
            True,
            "Loop detected: 'bash' retried 1 time(s) (acceptable: 0); expected a loop",
            id="a stretch before the cap",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "should_loop": True},
            [],
            {"metadata": {"iterationCapReached": True}},
            True,
            "Loop detected: simulation iteration cap reached; expected a loop",
            id="cap in the metadata",
        ),
        pytest.param(
            {"max_acceptable_retries": 0},
            [],
            {"metadata": {"iterationCapReached": "yes"}},
            True,
            "No loop detected (most retries: 0, acceptable: 0); expected no loop",
            id="no cap in the metadata",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "match": "observation"},
            [("t", {"a": 1}, "same"), ("t", {"a": 2}, "same")],
            {},
            False,
            "Loop detected: 't' retried 1 time(s) (acceptable: 0); expected no loop",
            id="observation",
        ),
        pytest.param(
            {"max_acceptable_retries": 0, "tools": ["^a$"]},
            ["a", "b", "b"],
            {},
            True,
            "No loop detected (most retries: 0, acceptable: 0); expected no loop",
            id="watched tools",
        ),
    ],
)
def test_table(
    calls: MakeCalls, config: dict[str, Any], written: list[Any], fields: dict[str, Any], passed: bool, evidence: str
) -> None:
    result = grade(RECORD, config, trajectory(*calls(*written), **fields))
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)


@pytest.mark.parametrize(
    ("written", "fields", "looped", "retries", "period", "capped"),
    [
        (["A", "B"] * 4, {}, True, 3, 2, False),
        (["A", "B"], CAPPED, True, 0, 1, True),
        ([], {}, False, 0, None, False),
    ],
)
def test_metadata(
    calls: MakeCalls,
    written: list[str],
    fields: dict[str, Any],
    looped: bool,
    retries: int,
    period: int | None,
    capped: bool,
) -> None:
    config = {"max_acceptable_retries": 1, "max_cycle_period": 3, "should_loop": True}
    result = grade(RECORD, config, trajectory(*calls(*written), **fields))
    assert result.passed is looped
    assert result.metadata == {
        "looped": looped,
        "shouldLoop": True,
        "retries": retries,
        "maxAcceptableRetries": 1,
        "period": period,
        "iterationCapReached": capped,
    }


@pytest.mark.parametrize(
    ("should_loop", "scope_evidence"),
    [
        (False, "No loop detected (most retries: 0, acceptable: 0); expected no loop"),
        (True, "No events in agent scope 'nobody'"),
    ],
)
def test_an_agent_that_did_nothing(calls: MakeCalls, should_loop: bool, scope_evidence: str) -> None:
    config = {"max_acceptable_retries": 0, "should_loop": should_loop}
    result = grade(RECORD, config, trajectory(*calls("a", "a")), scope="nobody")
    assert (result.passed, result.evidence) == (not should_loop, scope_evidence)


@pytest.mark.parametrize(
    ("config", "name", "absence"),
    [
        ({"max_acceptable_retries": 3, "tools": ["a"]}, "loop-outcome 3", True),
        ({"max_acceptable_retries": 3, "should_loop": False}, "loop-outcome 3", True),
        ({"max_acceptable_retries": 3, "should_loop": True}, "loop-outcome 3 loop expected", False),
    ],
)
def test_names_and_absence(config: dict[str, Any], name: str, absence: bool) -> None:
    grader, parsed = HOST.create(RECORD), HOST.parse_config(RECORD, config)
    assert grade(RECORD, config, trajectory()).name == grader.default_name(parsed) == name
    assert grader.asserts_absence(parsed) is absence


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'max_acceptable_retries' is required"),
        ({"max_acceptable_retries": -1}, "'max_acceptable_retries' must be at least 0"),
        ({"max_acceptable_retries": 1, "should_loop": "no"}, "'should_loop' must be true or false"),
        ({"max_acceptable_retries": 1, "max": 1}, "unknown key 'max'"),
        ({"max_acceptable_retries": 1, "match": ""}, "'match' must be 'observation', 'name' or 'name-args'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for loop-outcome: {problem}"
