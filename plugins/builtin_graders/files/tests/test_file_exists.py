"""`file-exists` and `file-not-exists`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_files import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")


@pytest.mark.parametrize(
    ("keyword", "path", "files", "passed", "evidence"),
    [
        pytest.param(
            "file-exists",
            "add.test.js",
            ["add.test.js"],
            True,
            "Files matching 'add.test.js' found: add.test.js",
            id="FE-1",
        ),
        pytest.param("file-exists", "add.test.js", [], False, "No files matching 'add.test.js' found", id="FE-2"),
        pytest.param(
            "file-exists", "*.md", ["b.md", "a.md"], True, "Files matching '*.md' found: a.md, b.md", id="FE-3"
        ),
        pytest.param("file-not-exists", ".env", [], True, "No files matching '.env' found", id="FE-4"),
        pytest.param(
            "file-exists",
            "**/*.yml",
            [".github/ci.yml"],
            True,
            "Files matching '**/*.yml' found: .github/ci.yml",
            id="FE-5",
        ),
        pytest.param("file-not-exists", ".env", [".env"], False, "Files matching '.env' found: .env", id="negated hit"),
        pytest.param("file-exists", "src", ["src/a"], True, "Files matching 'src' found: src", id="directory"),
        pytest.param(
            "file-exists", "./src/", ["src/a"], True, "Files matching './src/' found: src", id="dot and slash"
        ),
        pytest.param("file-exists", "a/", ["a"], False, "No files matching 'a/' found", id="a file is no directory"),
        pytest.param(
            "file-exists",
            "app/[id]/p.tsx",
            ["app/[id]/p.tsx", "app/i/p.tsx"],
            True,
            "Files matching 'app/[id]/p.tsx' found: app/[id]/p.tsx, app/i/p.tsx",
            id="verbatim beside the glob",
        ),
        pytest.param("file-exists", "a[", ["a["], True, "Files matching 'a[' found: a[", id="malformed but there"),
        pytest.param(
            "file-exists", "README.md", ["readme.md"], False, "No files matching 'README.md' found", id="case"
        ),
        pytest.param(
            "file-exists", "**/config", [".git/config"], False, "No files matching '**/config' found", id=".git"
        ),
        pytest.param(
            "file-exists",
            "*",
            [f"{n:02}" for n in range(25)],
            True,
            "Files matching '*' found: " + ", ".join(f"{n:02}" for n in range(20)) + ", … (+5 more)",
            id="many",
        ),
    ],
)
def test_table(tmp_path: Path, keyword: str, path: str, files: list[str], passed: bool, evidence: str) -> None:
    make(tmp_path, *files)
    result = grade(RECORDS[keyword], {"path": path}, trajectory(work_dir=str(tmp_path)))
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)
    assert result.name == f"{keyword} {path}"
    assert result.metadata is not None
    assert result.metadata["root"] == "workspace"
    assert result.metadata["matchCount"] == len(result.metadata["matches"])


@pytest.mark.parametrize(
    ("strict", "passed", "root"),
    [pytest.param(True, False, "artifact", id="FE-6"), pytest.param(False, True, "workspace", id="FE-6-not-strict")],
)
def test_artifacts_come_first(tmp_path: Path, strict: bool, passed: bool, root: str) -> None:
    make(tmp_path, "work/out.txt", "artifacts/other.txt")
    recorded = trajectory(
        work_dir=str(tmp_path / "work"), artifact_dir=str(tmp_path / "artifacts"), artifact_dir_strict=strict
    )
    result = grade(RECORDS["file-exists"], {"path": "out.txt"}, recorded)
    assert result.passed is passed
    assert result.metadata is not None
    assert result.metadata["root"] == root
    assert grade(RECORDS["file-exists"], {"path": "other.txt"}, recorded).metadata == {
        "root": "artifact",
        "matchCount": 1,
        "matches": ["other.txt"],
    }


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        pytest.param({"work_dir": "/nonexistent/w"}, "Workspace is not accessible: /nonexistent/w", id="FE-7"),
        ({"work_dir": ""}, "Workspace is not accessible: "),
        (
            {"work_dir": ".", "workspace_status": "remote"},
            "Workspace is remote and cannot be read from this machine",
        ),
        ({"work_dir": ".", "artifact_dir_strict": True}, "Artifact directory is not accessible: (not recorded)"),
        (
            {"work_dir": ".", "artifact_dir": "/nonexistent/a", "artifact_dir_strict": True},
            "Artifact directory is not accessible: /nonexistent/a",
        ),
    ],
)
@pytest.mark.parametrize("keyword", ["file-exists", "file-not-exists"])
def test_inaccessible_places_are_errors(keyword: str, fields: dict[str, Any], evidence: str) -> None:
    result = grade(RECORDS[keyword], {"path": "out.txt"}, trajectory(**fields))
    assert (result.status, result.passed, result.evidence) == ("error", False, evidence)
    assert result.metadata == {"error": {"kind": "workspace", "message": evidence}}


def test_artifacts_need_no_workspace(tmp_path: Path) -> None:
    make(tmp_path, "out.txt")
    recorded = trajectory(work_dir="/nonexistent/w", artifact_dir=str(tmp_path))
    assert grade(RECORDS["file-exists"], {"path": "out.txt"}, recorded).passed


@pytest.mark.parametrize(
    "path",
    [pytest.param("../x", id="FE-8"), "/etc/passwd", "C:\\x", "C:/x", "\\\\host\\x", "a/../../x", "{..,a}/x", ""],
)
@pytest.mark.parametrize("keyword", list(RECORDS))
def test_paths_stay_inside(keyword: str, path: str) -> None:
    config = {
        "path": path,
        **({"value": "x"} if "contains" in keyword else {"pattern": "x"} if "matches" in keyword else {}),
    }
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], config)
    assert str(caught.value) == f"Invalid config for {keyword}: 'path' must stay inside the workspace"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'path' is required"),
        ({"path": 1}, "'path' must be a string"),
        ({"path": "a", "value": "x"}, "unknown key 'value'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS["file-exists"], config)
    assert str(caught.value) == f"Invalid config for file-exists: {problem}"


@pytest.mark.parametrize("field", ["turn", "scope"])
def test_turn_and_scope_are_not_supported(tmp_path: Path, field: str) -> None:
    value: Any = 0 if field == "turn" else "main"
    result = grade(RECORDS["file-exists"], {"path": "a"}, trajectory(work_dir=str(tmp_path)), **{field: value})
    assert (result.status, result.evidence) == ("error", f"Invalid config for file-exists: '{field}' is not supported")


if sys.platform != "win32":

    def test_links_of_any_kind_exist(tmp_path: Path) -> None:
        (tmp_path / "dangling").symlink_to("nowhere")
        (tmp_path / "outside").symlink_to("/")
        record, recorded = RECORDS["file-exists"], trajectory(work_dir=str(tmp_path))
        result = grade(record, {"path": "*"}, recorded)
        assert result.evidence == "Files matching '*' found: dangling, outside"
        assert grade(record, {"path": "dangling"}, recorded).passed
