"""`json-schema`: verdicts, and schemas that are refused."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from vally import PluginHost, read_eval_spec
from vally.testing import grade, trajectory
from vally_grader_json import plugin

RECORD = next(record for record in plugin.vally_graders() if record.name == "json-schema")
SLOW = "^(a+)+$"
CLOSED = {"unevaluatedProperties": False}
AB, AB_TRUE = {"a": 1, "b": 1}, {"a": True, "b": True}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NEEDS_A = {"type": "object", "required": ["a"]}
HERE = "must lead to a schema in the same document, not to"


@pytest.mark.parametrize(
    ("schema", "output", "passed", "evidence"),
    [
        pytest.param(NEEDS_A, '{"a":1}', True, "Output satisfies the schema", id="JS-1"),
        pytest.param(NEEDS_A, "hello", False, "Output is not valid JSON: ", id="JS-2"),
        (NEEDS_A, "{}", False, "Output violates the schema at /: 'a' is a required property"),
        (
            {"properties": {"a/b": {"items": {"type": "integer"}}}},
            '{"a/b": [1, "x"]}',
            False,
            "Output violates the schema at /a~1b/1: 'x' is not of type 'integer'",
        ),
        ({"type": "integer"}, "1.0", True, "Output satisfies the schema"),
        ({"const": 1}, "true", False, "Output violates the schema at /: 1 was expected"),
        ({"prefixItems": [{"const": 1}], "items": False}, "[1, 2]", False, "Output violates the schema at /"),
        ({"$defs": {"n": {"type": "null"}}, "items": {"$ref": "#/$defs/n"}}, "[null]", True, "Output satisfies"),
        ({"format": "email"}, '"no email"', True, "Output satisfies the schema"),
    ],
)
def test_table(grade_output: Any, schema: dict[str, Any], output: str, passed: bool, evidence: str) -> None:
    result = grade_output("json-schema", {"schema": schema}, output)
    assert (result.passed, result.score, result.status) == (passed, float(passed), None)
    assert result.evidence.startswith(evidence)
    assert result.name == "json-schema output"


def test_all_violations_are_nested_results(grade_output: Any) -> None:
    schema = {"items": {"type": "integer"}, "maxItems": 2}
    result = grade_output("json-schema", {"schema": schema}, '[1, "x", null]')
    assert [(detail.name, detail.passed, detail.evidence) for detail in result.details] == [
        ("/1", False, "'x' is not of type 'integer'"),
        ("/2", False, "None is not of type 'integer'"),
        ("/", False, "[1, 'x', None] is too long"),
    ]
    assert result.metadata == {"violations": 3, "truncated": False}


def test_a_thousand_violations_are_enough(grade_output: Any) -> None:
    result = grade_output(
        "json-schema", {"schema": {"items": {"type": "null"}}}, json.dumps(["x" * 10_000] + [1] * 5000)
    )
    assert len(result.details) == 1000
    assert result.metadata == {"violations": 1000, "truncated": True}
    assert len(result.evidence) < 600


@pytest.mark.parametrize(
    ("schema", "document", "passed"),
    [
        ({"pattern": r"^\p{Lu}\d$"}, "É7", True),
        ({"pattern": r"^\d$"}, "٣", False),
        ({"pattern": "^a$"}, "a\n", False),
        ({"pattern": "^.$"}, "\U0001f600", True),
        ({"pattern": ""}, "x", True),
        ({"pattern": "b"}, "abc", True),
        ({"pattern": "b"}, 7, True),
        ({"patternProperties": {r"^\p{Lu}": {"type": "integer"}}}, {"É": "x"}, False),
        ({"patternProperties": {r"^\p{Lu}": {"type": "integer"}}}, {"é": "x"}, True),
        ({"patternProperties": {"a": False}}, [1], True),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"x1": 1}, True),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"y": 1}, False),
        ({"properties": {"y": True}, "additionalProperties": False}, {"y": 1}, True),
        ({"additionalProperties": {"type": "integer"}}, {"y": "1"}, False),
        ({"additionalProperties": {"type": "integer"}}, {"y": 1}, True),
        ({"additionalProperties": True}, {"y": 1}, True),
        ({"additionalProperties": False}, [1], True),
        ({"patternProperties": {"^x": True}, "unevaluatedProperties": False}, {"x1": 1}, True),
        ({"patternProperties": {"^x": True}, "unevaluatedProperties": False}, {"y": 1}, False),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}, True),
        ({"allOf": [{"patternProperties": {r"^\p{L}+$": True}}], "unevaluatedProperties": False}, {"é": 1}, True),
        ({"allOf": [{"patternProperties": {r"^\p{L}+$": True}}], "unevaluatedProperties": False}, {"1": 1}, False),
        ({"anyOf": [{"required": ["b"], "properties": {"a": True}}, True], **CLOSED}, {"a": 1}, False),
        ({"anyOf": [{"required": ["b"], "properties": {"a": True, "b": True}}], **CLOSED}, {"a": 1, "b": 1}, True),
        ({"not": {"properties": {"a": {"type": "string"}}}, **CLOSED}, {"a": 1}, False),
        ({"if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": True}}, **CLOSED}, AB, True),
        ({"if": {"properties": {"a": {"const": 2}}}, "then": {"properties": {"b": True}}, **CLOSED}, AB, False),
        ({"if": {"properties": {"a": {"const": 2}}}, "else": {"properties": AB_TRUE}, **CLOSED}, AB, True),
        ({"dependentSchemas": {"a": {"properties": AB_TRUE}}, **CLOSED}, AB, True),
        ({"dependentSchemas": {"c": {"properties": AB_TRUE}}, **CLOSED}, AB, False),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": AB_TRUE}}, **CLOSED}, AB, True),
        ({"$ref": "#/$defs/x", "$defs": {"x": True}, **CLOSED}, AB, False),
        ({"allOf": [{"additionalProperties": {"type": "integer"}}], **CLOSED}, AB, True),
        ({"allOf": [{"unevaluatedProperties": True}], **CLOSED}, AB, True),
        ({"properties": {"a": True}, "unevaluatedProperties": {"type": "integer"}}, AB, True),
        ({"properties": {"a": True}, "unevaluatedProperties": {"type": "string"}}, AB, False),
        (CLOSED, [1], True),
        (
            {"$schema": DIALECT, "properties": {"n": {"$ref": "#"}}, "patternProperties": {r"^\p{L}$": False}},
            {"n": {"é": 1}},
            False,
        ),
    ],
)
def test_names_and_patterns(grade_output: Any, schema: dict[str, Any], document: object, passed: bool) -> None:
    result = grade_output("json-schema", {"schema": schema}, json.dumps(document))
    assert result.status is None, result.evidence
    assert result.passed is passed


@pytest.mark.parametrize(
    ("schema", "document", "passed"),
    [
        ({"properties": {"next": {"$ref": "#"}}, "required": ["n"]}, {"n": 1, "next": {"n": 2}}, True),
        ({"properties": {"next": {"$ref": "#"}}, "required": ["n"]}, {"n": 1, "next": {}}, False),
        ({"$defs": {"x": {"$anchor": "p", "minimum": 1}}, "$ref": "#p"}, 0, False),
        ({"$id": "https://a.test/s", "$ref": "t", "$defs": {"t": {"$id": "t", "type": "string"}}}, "x", True),
        ({"$id": "https://a.test/s", "$ref": "t", "$defs": {"t": {"$id": "t", "type": "string"}}}, 1, False),
        ({"$ref": "#/parts/a", "parts": {"a": {"type": "string"}}}, 1, False),
        ({"$dynamicAnchor": "n", "properties": {"k": {"items": {"$dynamicRef": "#n"}}}}, {"k": [{}]}, True),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"}, None, True),
    ],
)
def test_references_inside_the_document(
    grade_output: Any, schema: dict[str, Any], document: object, passed: bool
) -> None:
    result = grade_output("json-schema", {"schema": schema}, json.dumps(document))
    assert (result.status, result.passed) == (None, passed), result.evidence


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "thing"}, "'schema.type' is not valid: 'thing' is not valid under any of the given schemas"),
        ({"properties": {"a": {"minimum": "1"}}}, "'schema.properties.a.minimum' is not valid: "),
        ({"items": [{}]}, "'schema.items' is not valid: "),
        ({"allOf": [{"$ref": "#/nowhere"}]}, f"'schema.allOf[0].$ref' {HERE} '#/nowhere'"),
        ({"$ref": "other.json"}, f"'schema.$ref' {HERE} 'other.json'"),
        ({"$ref": "https://example.com/s.json"}, f"'schema.$ref' {HERE} 'https://example.com/s.json'"),
        ({"$ref": "file:///etc/hostname"}, f"'schema.$ref' {HERE} 'file:///etc/hostname'"),
        ({"$ref": "http://[bad"}, f"'schema.$ref' {HERE} 'http://[bad'"),
        (
            {"not": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
            f"'schema.not.$ref' {HERE} 'https://json-schema.org/draft/2020-12/schema'",
        ),
        ({"$dynamicRef": "#nowhere"}, f"'schema.$dynamicRef' {HERE} '#nowhere'"),
        ({"$ref": "#/x", "x": 3}, f"'schema.$ref' {HERE} '#/x'"),
        ({"$ref": "#/x", "x": {"type": 3}}, "'schema.$ref' leads to a schema that is not valid: "),
        ({"$ref": "#/x", "x": {"y": {}, "$ref": "#/z"}}, f"'schema.x.$ref' {HERE} '#/z'"),
        ({"items": {"pattern": "[a"}}, "'schema.items.pattern' is not a regular expression: "),
        ({"pattern": r"\_"}, "'schema.pattern' is not a regular expression: "),
        ({"patternProperties": {"(": True}}, "'schema.patternProperties.(' is not a regular expression: "),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            "'schema.$schema' must be https://json-schema.org/draft/2020-12/schema",
        ),
    ],
)
def test_schemas_that_are_refused(problem: Any, schema: dict[str, Any], message: str) -> None:
    assert problem("json-schema", {"schema": schema}).startswith(message)


def test_no_reference_is_looked_up_elsewhere(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", connect)
    problem("json-schema", {"schema": {"$ref": "http://127.0.0.1:9/s.json"}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "exactly one of 'schema' and 'schema_path' is required"),
        ({"schema": {}, "schema_path": "a"}, "exactly one of 'schema' and 'schema_path' is required"),
        ({"schema": True}, "'schema' must be a mapping"),
        ({"schema": {}, "value": "x"}, "unknown key 'value'"),
    ],
)
def test_configs_that_are_refused(problem: Any, config: dict[str, Any], message: str) -> None:
    assert problem("json-schema", config) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{oops", "'schema_path' must be a file of JSON: Expecting property name"),
        (b"\xff", "'schema_path' must be a file of JSON: it is not UTF-8"),
        (b"[]", "'schema_path' must hold a JSON object"),
        (b'{"type": 3}', "'schema_path' must hold a valid schema: /type is not valid: 3 is not valid"),
        (b'{"$ref": "other.json"}', f"'schema_path' must hold a valid schema: /$ref {HERE} 'other.json'"),
    ],
)
def test_schema_files_that_are_refused(problem: Any, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "s.json").write_bytes(content)
    assert problem("json-schema", {"schema_path": "s.json"}, spec_dir=tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("entry", "message", "line", "column"),
    [
        ("{schema_path: none.json}", "'schema_path' must be a file, 'none.json' does not exist", 6, 51),
        ("{schema: {items: {type: [7]}}}", "'schema.items.type' is not valid: [7] is not valid", 6, 61),
        ("{schema: {$ref: x.json}}", f"'schema.$ref' {HERE} 'x.json'", 6, 53),
    ],
)
def test_a_bad_schema_is_found_where_it_stands(
    tmp_path: Path, entry: str, message: str, line: int, column: int
) -> None:
    text = (
        f"name: e\nstimuli:\n  - name: s\n    prompt: p\n    graders:\n      - {{type: json-schema, config: {entry}}}\n"
    )
    (tmp_path / "eval.yaml").write_text(text)
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(plugin))
    (item,) = [item for item in loaded.diagnostics if item.level == "error"]
    assert item.message.startswith(f"Invalid config for json-schema: {message}")
    assert (item.code, item.line, item.column) == ("invalid-grader-config", line, column)


def test_a_schema_beside_the_eval(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "s.json").write_text(json.dumps(NEEDS_A))
    config = {"schema_path": "schemas/s.json"}
    assert grade(RECORD, config, trajectory(output='{"a": 1}'), spec_dir=tmp_path).passed
    result = grade(RECORD, config, trajectory(output="{}"), spec_dir=tmp_path)
    assert result.evidence == "Output violates the schema at /: 'a' is a required property"


def test_a_schema_that_never_ends_is_an_error(grade_output: Any) -> None:
    result = grade_output("json-schema", {"schema": {"$ref": "#"}}, "1")
    assert (result.status, result.evidence) == ("error", "Output or its schema is nested too deeply to be checked")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": SLOW},
        {"propertyNames": {"pattern": SLOW}},
        {"patternProperties": {SLOW: False}},
        {"patternProperties": {SLOW: False}, "additionalProperties": False},
        {"unevaluatedProperties": False, "patternProperties": {SLOW: True}},
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {SLOW: True}}]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"$schema": DIALECT, "patternProperties": {SLOW: True}}}},
    ],
)
def test_a_slow_pattern_is_an_error(grade_output: Any, schema: dict[str, Any]) -> None:
    text = "a" * 40 + "b"
    result = grade_output("json-schema", {"schema": schema}, json.dumps(text if "pattern" in schema else {text: 1}))
    assert (result.status, result.evidence) == ("error", f"Regex timed out after 5s: /{SLOW}/")


def test_json_points_here(tmp_path: Path) -> None:
    text = "name: e\nstimuli: [{name: s, prompt: p, graders: [{type: json}]}]\n"
    (tmp_path / "eval.yaml").write_text(text)
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(plugin))
    (item,) = [item for item in loaded.diagnostics if item.level == "error"]
    assert (item.code, item.hint) == ("unknown-grader-type", "did you mean 'json-schema'?")
