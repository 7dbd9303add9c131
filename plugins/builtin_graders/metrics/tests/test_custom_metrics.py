"""`custom-metrics`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, GraderResult, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_metrics import plugin

RECORD: GraderSpec = next(record for record in plugin.vally_graders() if record.name == "custom-metrics")
HOST = PluginHost.from_objects(plugin)
NAME = "custom_metrics.json"
ERRORS = {"metric": "errors", "equals": 0}
RATE = {"metric": "rate", "min": 0.8}


def run(root: Path, assertions: list[dict[str, Any]], text: str | bytes | None, **config: Any) -> GraderResult:
    if text is not None:
        path = root / config.get("path", NAME)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return grade(RECORD, {"assertions": assertions, **config}, trajectory(work_dir=str(root)))


@pytest.mark.parametrize(
    ("assertions", "text", "score", "evidence"),
    [
        pytest.param([ERRORS], '{"errors":0}', 1, "1/1 metric assertions passed", id="CM-1"),
        pytest.param(
            [ERRORS, RATE],
            '{"errors":3,"rate":0.9}',
            0.5,
            "1/2 metric assertions passed; errors = 3 (expected equals 0)",
            id="CM-2",
        ),
        pytest.param([RATE], '{"schema":1,"values":{"rate":0.8}}', 1, "1/1 metric assertions passed", id="CM-3"),
        pytest.param(
            [{"metric": "t", "max": 5}],
            '{"t":"4"}',
            0,
            "0/1 metric assertions passed; t is a string (expected a number)",
            id="CM-4",
        ),
        pytest.param([ERRORS], None, 0, "Metrics file 'custom_metrics.json' not found", id="CM-5"),
        pytest.param(
            [{"metric": "ok", "equals": 1}],
            '{"ok":true}',
            0,
            "0/1 metric assertions passed; ok = true (expected equals 1)",
            id="CM-7",
        ),
    ],
)
def test_table(tmp_path: Path, assertions: list[dict[str, Any]], text: str | None, score: float, evidence: str) -> None:
    result = run(tmp_path, assertions, text)
    assert (result.passed, result.score, result.status, result.evidence) == (score == 1, score, None, evidence)


def test_no_fallback_to_the_workspace(tmp_path: Path) -> None:
    """CM-6."""
    work, artifacts = tmp_path / "work", tmp_path / "artifacts"
    for directory, text in ((work, '{"errors":0}'), (artifacts, "{oops")):
        directory.mkdir()
        (directory / NAME).write_text(text)
    recorded = trajectory(work_dir=str(work), artifact_dir=str(artifacts))
    result = grade(RECORD, {"assertions": [ERRORS]}, recorded)
    assert (result.passed, result.score, result.status) == (False, 0, None)
    assert result.evidence.startswith("Metrics file 'custom_metrics.json' is not valid: ")
    assert result.metadata == {"root": "artifact", "path": NAME, "values": {}}
    assert result.details is None
    (artifacts / NAME).unlink()
    assert grade(RECORD, {"assertions": [ERRORS]}, recorded).passed


@pytest.mark.parametrize(
    ("assertion", "value", "passed", "evidence"),
    [
        ({"equals": 0}, "0", True, "m = 0 (expected equals 0)"),
        ({"equals": 1}, "1.0", True, "m = 1 (expected equals 1)"),
        ({"equals": 1.5}, "1.5", True, "m = 1.5 (expected equals 1.5)"),
        ({"equals": True}, "true", True, "m = true (expected equals true)"),
        ({"equals": True}, "1", False, "m = 1 (expected equals true)"),
        ({"equals": False}, "0", False, "m = 0 (expected equals false)"),
        ({"equals": "fast"}, '"fast"', True, 'm = "fast" (expected equals "fast")'),
        ({"equals": "fast"}, '"Fast"', False, 'm = "Fast" (expected equals "fast")'),
        ({"equals": "1"}, "1", False, 'm = 1 (expected equals "1")'),
        ({"equals": ""}, '""', True, 'm = "" (expected equals "")'),
        ({"equals": 0}, "null", False, "m is null (expected a number or a boolean or a string)"),
        ({"equals": "x"}, "{}", False, "m is an object (expected a number or a boolean or a string)"),
        ({"min": 0, "max": 200}, "180", True, "m = 180 (expected min 0, max 200)"),
        ({"min": 0, "max": 200}, "200", True, "m = 200 (expected min 0, max 200)"),
        ({"min": 0, "max": 200}, "-0.5", False, "m = -0.5 (expected min 0, max 200)"),
        ({"max": 200}, "200.25", False, "m = 200.25 (expected max 200)"),
        ({"min": 1}, "true", False, "m is a boolean (expected a number)"),
        ({"min": 1}, "[2]", False, "m is a list (expected a number)"),
        ({"min": 1}, None, False, "m is missing"),
    ],
)
def test_operators(tmp_path: Path, assertion: dict[str, Any], value: str | None, passed: bool, evidence: str) -> None:
    text = '{"other":[]}' if value is None else f'{{"m":{value},"other":[]}}'
    result = run(tmp_path, [{"metric": "m", **assertion}], text)
    assert result.passed is passed
    assert [(item.name, item.passed, item.evidence) for item in result.details or ()] == [("m", passed, evidence)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON (line 1 column 1: Expecting value)"),
        ("{'a': 1}", "it is not JSON (line 1 column 2: Expecting property name enclosed in double quotes)"),
        ('{"errors": NaN}', "it is not JSON (NaN is not a JSON number)"),
        ("[]", "it is not a JSON object"),
        ("0", "it is not a JSON object"),
        (b'{"errors":0}' + b" " * 2**20, "it is over 1 MiB"),
    ],
)
def test_files_that_are_not_valid(tmp_path: Path, text: str | bytes, reason: str) -> None:
    result = run(tmp_path, [ERRORS], text)
    assert (result.passed, result.score, result.status, result.details) == (False, 0, None, None)
    assert result.evidence == f"Metrics file 'custom_metrics.json' is not valid: {reason}"
    assert result.metadata == {"root": "workspace", "path": NAME, "values": {}}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"errors":' + "1" * 5_000 + "}"], ids=["deep", "long number"])
def test_hostile_files(tmp_path: Path, text: str) -> None:
    assert run(tmp_path, [ERRORS], text).evidence.startswith("Metrics file 'custom_metrics.json' is not valid: ")


def test_the_largest_file(tmp_path: Path) -> None:
    text = '{"errors":0}'
    assert run(tmp_path, [ERRORS], text + " " * (2**20 - len(text))).passed


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert run(tmp_path, [ERRORS], None).evidence == (
        "Metrics file 'custom_metrics.json' is not valid: it is a directory"
    )


def test_the_path_is_no_glob(tmp_path: Path) -> None:
    (tmp_path / "m1.json").write_text('{"errors":0}')
    assert run(tmp_path, [ERRORS], None, path="m[1].json").evidence == "Metrics file 'm[1].json' not found"
    assert run(tmp_path, [ERRORS], '{"errors":0}', path="m[1].json").passed
    assert run(tmp_path, [ERRORS], '{"errors":0}', path="./out/m.json").passed


def test_metadata_and_name(tmp_path: Path) -> None:
    text = '{"values":{"errors":0,"rate":0.5,"deep":[1],"secret":"x"}}'
    result = run(tmp_path, [ERRORS, RATE, {"metric": "gone", "equals": 1}, {"metric": "rate", "max": 1}], text)
    assert result.metadata == {"root": "workspace", "path": NAME, "values": {"errors": 0, "rate": 0.5}}
    assert (result.name, result.score) == ("custom-metrics errors, rate, gone, rate", 0.5)
    assert result.evidence == ("2/4 metric assertions passed; rate = 0.5 (expected min 0.8); gone is missing")


def test_values_that_are_no_object_are_a_metric(tmp_path: Path) -> None:
    assert run(tmp_path, [{"metric": "values", "equals": 3}], '{"values":3}').passed


def test_no_workspace(tmp_path: Path) -> None:
    result = run(tmp_path / "gone", [ERRORS], None)
    assert (result.status, result.evidence) == ("error", f"Workspace is not accessible: {tmp_path / 'gone'}")


@pytest.mark.parametrize("field", ["turn", "scope"])
def test_turn_and_scope_are_not_supported(field: str) -> None:
    value: Any = 0 if field == "turn" else "main"
    result = grade(RECORD, {"assertions": [ERRORS]}, trajectory(), **{field: value})
    assert (result.status, result.evidence) == (
        "error",
        f"Invalid config for custom-metrics: '{field}' is not supported",
    )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'assertions' is required"),
        ({"assertions": []}, "'assertions' must be non-empty"),
        ({"assertions": [{"equals": 1}]}, "'assertions[0].metric' is required"),
        ({"assertions": [{"metric": "", "equals": 1}]}, "'metric' must not be empty"),
        ({"assertions": [ERRORS, {"metric": "m"}]}, "'assertions[1]' needs 'equals', 'min' or 'max'"),
        (
            {"assertions": [{"metric": "m", "equals": 1, "max": 2}]},
            "'assertions[0]' cannot have 'equals' beside 'min' or 'max'",
        ),
        (
            {"assertions": [{"metric": "m", "min": 2, "max": 1}]},
            "'assertions[0]' must have a 'min' of at most its 'max'",
        ),
        ({"assertions": [{"metric": "m", "min": "1"}]}, "'assertions[0].min' must be a number"),
        ({"assertions": [{"metric": "m", "max": float("inf")}]}, "'assertions[0].max' must be a finite number"),
        ({"assertions": [{"metric": "m", "above": 1}]}, "unknown key 'assertions[0].above'"),
        (
            {"assertions": [{"metric": "m", "equals": [1]}]},
            "'assertions[0].equals' must be true or false, a number or a string",
        ),
        ({"assertions": [ERRORS], "path": "../m.json"}, "'path' must stay inside the workspace"),
        ({"assertions": [ERRORS], "path": "/m.json"}, "'path' must stay inside the workspace"),
        ({"assertions": [ERRORS], "path": ""}, "'path' must stay inside the workspace"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for custom-metrics: {problem}"
