"""What both keywords look at: the answer, a fenced block in it, or a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vally import PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_json import plugin

RECORDS = {record.name: record for record in plugin.vally_graders()}
ANY: dict[str, dict[str, Any]] = {"json-schema": {"schema": {}}, "json-path": {"query": "$", "exists": True}}
both = pytest.mark.parametrize("keyword", list(ANY))

# Newer releases of Python say where the comma is, older ones what they expected behind it.
TRAILING_COMMA = (
    "Illegal trailing comma before end of object at line 1, column 8"
    if sys.version_info >= (3, 13)
    else "Expecting property name enclosed in double quotes at line 2, column 1"
)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ('{"v": 1}', 1),
        (' \r\n\t{"v": 1}\n', 1),
        ('\ufeff{"v": 1}', 1),
        ('{"v": 1, "v": 2}', 2),
        ('Here it is:\n```json\n{"v": 1}\n```\nDone.', 1),
        ('```json\n{"v": 1}\n```\n```json\n{"v": 2}\n```', 1),
        ('```python\nx = {"v": 3}\n```\n```json\n{"v": 1}\n```', 1),
        ('~~~JSON title="a"\n{"v": 1}\n~~~', 1),
        ('````json\n{"v": "```"}\n````', "```"),
        ('1. Look:\n\n   ```json\n   {\n     "v": 1\n   }\n   ```', 1),
        ('```json\r\n{"v": 1}\r\n```\r\n', 1),
        ('```json\n{"v": 1}', 1),
        ('````md\n```json\n{"v": 2}\n```\n````\n```json\n{"v": 1}\n```', 1),
        ('```json\n{"v": "\u2028"}\n```', "\u2028"),
    ],
)
def test_what_counts_as_the_document(grade_output: Any, output: str, value: object) -> None:
    result = grade_output("json-path", {"query": "$.v", "equals": value}, output)
    assert result.passed, result.evidence


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "Expecting value at line 1, column 1"),
        ("hello", "Expecting value at line 1, column 1"),
        ("{'v': 1}", "Expecting property name enclosed in double quotes at line 1, column 2"),
        ('{"v": 1} and more', "Extra data at line 1, column 10"),
        ('```\n{"v": 1}\n```', "Expecting value at line 1, column 1"),
        ('```jsonc\n{"v": 1}\n```', "Expecting value at line 1, column 1"),
        ('```json {"v": 1} ```', "Expecting value at line 1, column 1"),
        ('hm\n```json\n{"v": 1,\n}\n```', TRAILING_COMMA),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e400]", "the number 1e400 is out of range"),
        ("9" * 5000, f"the number {'9' * 20}… is out of range"),
        ("9" * 310, f"the number {'9' * 20}… is out of range"),
        ("[" * 200_000, "it is nested too deeply"),
    ],
)
@both
def test_what_is_no_document(grade_output: Any, keyword: str, output: str, message: str) -> None:
    result = grade_output(keyword, ANY[keyword], output)
    assert (result.passed, result.status, result.evidence) == (False, None, f"Output is not valid JSON: {message}")


@both
def test_a_file_of_the_workspace(grade_file: Any, keyword: str) -> None:
    result = grade_file(keyword, ANY[keyword], "\ufeff[1]\n")
    assert (result.passed, result.name) == (True, f"{keyword} out.json")
    assert result.metadata["root"] == "workspace"
    assert result.metadata["path"] == "out.json"


@pytest.mark.parametrize(
    ("content", "message"),
    [("{oops", "Expecting property name enclosed in double quotes at line 1, column 2"),
     ("```json\n1\n```", "Expecting value at line 1, column 1")],
)  # fmt: skip
@both
def test_a_file_must_be_json_itself(grade_file: Any, keyword: str, content: str, message: str) -> None:
    result = grade_file(keyword, ANY[keyword], content)
    assert (result.passed, result.evidence) == (False, f"File 'out.json' is not valid JSON: {message}")


@both
def test_a_file_that_is_not_there(grade_file: Any, keyword: str) -> None:
    result = grade_file(keyword, ANY[keyword], None)
    assert (result.passed, result.status, result.evidence) == (False, None, "File 'out.json' not found")


@both
def test_a_file_that_is_too_large(grade_file: Any, keyword: str) -> None:
    result = grade_file(keyword, ANY[keyword], b" " * (16 * 2**20 + 1))
    assert result.evidence == "Indeterminate: could not read 1 file(s) matching 'out.json': out.json (too large)"
    assert not result.passed


@both
def test_a_path_is_taken_literally(tmp_path: Path, keyword: str) -> None:
    (tmp_path / "a.json").write_text("1")
    (tmp_path / "folder").mkdir()
    recorded = trajectory(work_dir=str(tmp_path))
    for path in ("*.json", "?.json", "folder", "{a,b}.json"):
        result = grade(RECORDS[keyword], {"path": path, **ANY[keyword]}, recorded)
        assert result.evidence == f"File '{path}' not found"
    (tmp_path / "[a].json").write_text("1")
    assert grade(RECORDS[keyword], {"path": "[a].json", **ANY[keyword]}, recorded).passed


@both
def test_artifacts_come_first(tmp_path: Path, keyword: str) -> None:
    for folder, text in (("work", "{}"), ("artifacts", "{broken")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "out.json").write_text(text)
    recorded = trajectory(work_dir=str(tmp_path / "work"), artifact_dir=str(tmp_path / "artifacts"))
    result = grade(RECORDS[keyword], {"path": "out.json", **ANY[keyword]}, recorded)
    assert (result.passed, result.metadata["root"]) == (False, "artifact")  # type: ignore[index]


@both
def test_a_missing_workspace_is_an_error(tmp_path: Path, keyword: str) -> None:
    work_dir = str(tmp_path / "gone")
    result = grade(RECORDS[keyword], {"path": "a", **ANY[keyword]}, trajectory(work_dir=work_dir))
    assert (result.status, result.evidence) == ("error", f"Workspace is not accessible: {work_dir}")


@both
def test_the_answer_can_be_narrowed_but_not_a_file(tmp_path: Path, keyword: str) -> None:
    recorded = trajectory(
        event("assistant_message", content="[1]", turn=0),
        event("assistant_message", content="no", turn=1),
        event("assistant_message", content="{", turn=1, agent_id="helper"),
        work_dir=str(tmp_path),
        output="no",
        stimulus={"name": "s", "turns": ["a", "b"]},
    )
    assert grade(RECORDS[keyword], ANY[keyword], recorded, turn=0).passed
    assert not grade(RECORDS[keyword], ANY[keyword], recorded, turn=1).passed
    assert "column 2" in grade(RECORDS[keyword], ANY[keyword], recorded, scope="subagents").evidence
    for field, value in (("turn", 0), ("scope", "main")):
        facts: dict[str, Any] = {field: value}
        result = grade(RECORDS[keyword], {"path": "a", **ANY[keyword]}, recorded, **facts)
        assert result.evidence == f"Invalid config for {keyword}: '{field}' is not supported"


@both
def test_the_golden_input_follows_from_the_path(keyword: str) -> None:
    record, host = RECORDS[keyword], PluginHost.from_objects(plugin)
    assert record.gradable_with(host.parse_config(record, ANY[keyword])) == "trajectory"
    assert record.gradable_with(host.parse_config(record, {"path": "a", **ANY[keyword]})) == "state"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", ""])
@both
def test_paths_stay_inside(problem: Any, keyword: str, path: str) -> None:
    assert problem(keyword, {"path": path, **ANY[keyword]}) == "'path' must stay inside the workspace"
