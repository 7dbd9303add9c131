"""`json-path`: verdicts, and configs that are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("config", "output", "passed", "evidence"),
    [
        pytest.param(
            {"query": "$.a.b", "equals": 2}, '{"a":{"b":2.0}}', True, "Query $.a.b selected 2 (expected 2)", id="JP-1"
        ),
        pytest.param(
            {"query": "$.items[*]", "equals": 1},
            '{"items":[1,1]}',
            False,
            "Query $.items[*] selected 2 node(s) (expected exactly 1)",
            id="JP-2",
        ),
        ({"query": "$.x", "equals": 1}, "{}", False, "Query $.x selected 0 node(s) (expected exactly 1)"),
        ({"query": "$.x", "equals": None}, '{"x":null}', True, "Query $.x selected null (expected null)"),
        ({"query": "$.x", "equals": 1}, '{"x":true}', False, "Query $.x selected true (expected 1)"),
        ({"query": "$", "equals": {"b": [1], "a": "é"}}, '{"a":"é","b":[1.0]}', True, None),
        ({"query": "$.x", "exists": True}, '{"x":null}', True, "Query $.x selected 1 node(s) (expected at least 1)"),
        ({"query": "$.x", "exists": True}, "[]", False, "Query $.x selected 0 node(s) (expected at least 1)"),
        ({"query": "$.x", "exists": False}, "{}", True, "Query $.x selected 0 node(s) (expected none)"),
        ({"query": "$..x", "exists": False}, '{"x":{"x":1}}', False, "Query $..x selected 2 node(s) (expected none)"),
        ({"query": "$.x", "exists": False}, "hello", False, "Output is not valid JSON: "),
    ],
)
def test_table(grade_output: Any, config: dict[str, Any], output: str, passed: bool, evidence: str | None) -> None:
    result = grade_output("json-path", config, output)
    assert (result.passed, result.score, result.status) == (passed, float(passed), None)
    assert evidence is None or result.evidence.startswith(evidence)
    assert result.name == "json-path output"


@pytest.mark.parametrize("_", [pytest.param(None, id="JP-3")])
def test_no_file(grade_file: Any, _: None) -> None:
    result = grade_file("json-path", {"query": "$.x", "exists": True}, None)
    assert (result.passed, result.status, result.evidence) == (False, None, "File 'out.json' not found")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        (True, True, True),
        ("1", 1, False),
        (None, False, False),
        ([], {}, False),
        ([1, [True]], [1.0, [True]], True),
        ([1, [True]], [1.0, [1]], False),
        ([1, 2], [1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": False}}, {"a": {"b": 0}}, False),
        (10**20, 1e20, True),
        (2**53, 2**53 + 1, False),
        (0, -0.0, True),
        ("é", "e\u0301", False),
    ],
)
def test_equality(grade_output: Any, one: object, other: object, equal: bool) -> None:
    for value, expected in ((one, other), (other, one)):
        result = grade_output("json-path", {"query": "$", "equals": value}, json.dumps(expected))
        assert result.passed is equal, result.evidence


def test_evidence_is_cut(grade_output: Any) -> None:
    result = grade_output("json-path", {"query": "$", "equals": 1}, json.dumps("x" * 5000))
    assert len(result.evidence) == 2000


def test_a_document_too_deep_for_a_query_is_an_error(grade_output: Any) -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400
    result = grade_output("json-path", {"query": "$..a", "exists": True}, deep)
    assert (result.status, result.passed) == ("error", False)
    assert result.evidence.startswith("Query $..a cannot be evaluated: ")
    assert grade_output("json-path", {"query": "$.a.a.a", "exists": True}, deep).passed


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "'query' is required"),
        ({"query": "$"}, "exactly one of 'equals' and 'exists' is required"),
        ({"query": "$", "equals": None, "exists": True}, "exactly one of 'equals' and 'exists' is required"),
        ({"query": "$", "exists": 1}, "'exists' must be true or false"),
        ({"query": "", "exists": True}, "'query' must not be empty"),
        ({"query": "$.", "exists": True}, "'query' is not a valid JSONPath query: "),
        ({"query": "$[?" + "(" * 5000 + "@.a", "exists": True}, "'query' is not a valid JSONPath query: "),
        ({"query": "$", "exists": True, "turn": 1}, "unknown key 'turn'"),
    ],
)
def test_configs_that_are_refused(problem: Any, config: dict[str, Any], message: str) -> None:
    assert problem("json-path", config).startswith(message)


@pytest.mark.heavy
@pytest.mark.parametrize(("function", "pattern"), [("match", "(a|a|aa)+"), ("search", "^(a|a|aa)+$")])
def test_a_slow_pattern_is_an_error(grade_output: Any, function: str, pattern: str) -> None:
    config = {"query": f"$[?{function}(@, '{pattern}')]", "exists": True}
    result = grade_output("json-path", config, json.dumps(["a" * 60 + "b"]))
    assert result.status == "error"
    assert result.evidence.startswith("Regex timed out after 5s: /")
    assert pattern in result.evidence
