"""`file-contains`, `file-matches` and their negations."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, GraderResult, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_files import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
CONTENT_KEYWORDS = [keyword for keyword in RECORDS if "exists" not in keyword]


def run(
    root: Path, keyword: str, config: Mapping[str, Any], files: Mapping[str, str | bytes], **fields: Any
) -> GraderResult:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return grade(RECORDS[keyword], dict(config), trajectory(work_dir=str(root), **fields))


def needle(keyword: str, text: str) -> dict[str, str]:
    return {"value" if "contains" in keyword else "pattern": text}


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a file unreadable, also for a user whom permissions do not stop."""
    forbidden: set[str] = set()
    really_open = os.open

    def open_unless_forbidden(path: Any, *args: Any, **kwargs: Any) -> int:
        if os.fspath(path) in forbidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really_open(path, *args, **kwargs)

    def forbid_path(path: Path) -> None:
        path.chmod(0)
        forbidden.add(os.path.realpath(path))

    monkeypatch.setattr(os, "open", open_unless_forbidden)
    return forbid_path


@pytest.mark.parametrize(
    ("keyword", "path", "text", "files", "passed", "evidence"),
    [
        pytest.param(
            "file-contains",
            "README.md",
            "Usage",
            {"README.md": "## Usage"},
            True,
            "'Usage' found in README.md",
            id="FC-1",
        ),
        pytest.param(
            "file-contains",
            "README.md",
            "usage",
            {"README.md": "## Usage"},
            False,
            "'usage' NOT found in README.md",
            id="FC-2",
        ),
        pytest.param(
            "file-contains",
            "src/*.py",
            "x",
            {"src/a.py": "", "src/b.py": "x"},
            True,
            "'x' found in src/b.py",
            id="FC-3",
        ),
        pytest.param(
            "file-not-contains",
            "src/*.py",
            "TODO",
            {"src/a.py": "", "src/b.py": ""},
            True,
            "'TODO' NOT found in src/a.py, src/b.py",
            id="FC-4",
        ),
        pytest.param("file-not-contains", "nope.txt", "x", {}, False, "No files matching 'nope.txt' found", id="FC-5"),
        pytest.param("file-not-contains", "a", "x", {"a": "x"}, False, "'x' found in a", id="negated hit"),
        pytest.param("file-contains", "a", "é", {"a": b"\xff\xc3\xa9\x00"}, True, "'é' found in a", id="invalid UTF-8"),
        pytest.param("file-contains", "**/*", "x", {"d/a": "x"}, True, "'x' found in d/a", id="directories drop out"),
        pytest.param(
            "file-matches", "*.js", r"test\(", {"a.js": "test("}, True, r"Pattern /test\(/ matched in a.js", id="FM-1"
        ),
        pytest.param(
            "file-matches",
            "*.js",
            "zzz",
            {"a.js": "test("},
            False,
            "Pattern /zzz/ not found in any file matching '*.js'",
            id="FM-2",
        ),
        pytest.param(
            "file-not-matches",
            "*.js",
            r"eval\(",
            {"a.js": ""},
            True,
            r"Pattern /eval\(/ not found in any file matching '*.js'",
            id="FM-3",
        ),
        pytest.param("file-not-matches", "*.ts", "x", {"a.js": ""}, False, "No files matching '*.ts' found", id="FM-4"),
        pytest.param("file-matches", "src", "x", {"src/a": "x"}, False, "No files matching 'src' found", id="FM-6"),
        pytest.param(
            "file-matches",
            "a.txt",
            "^hello$",
            {"a.txt": b"\xef\xbb\xbfhello"},
            True,
            "Pattern /^hello$/ matched in a.txt",
            id="FM-7",
        ),
        pytest.param(
            "file-matches",
            "*.ts",
            "[bad",
            {},
            False,
            "No files matching '*.ts' found",
            id="no candidate before the pattern",
        ),
    ],
)
def test_table(
    tmp_path: Path, keyword: str, path: str, text: str, files: dict[str, str | bytes], passed: bool, evidence: str
) -> None:
    result = run(tmp_path, keyword, {"path": path, **needle(keyword, text)}, files)
    assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)
    assert result.name == f"{keyword} {path} {text}"
    assert result.metadata is not None
    assert result.metadata["unreadable"] == []


@pytest.mark.parametrize("keyword", ["file-matches", "file-not-matches"])
def test_an_invalid_pattern_fails_before_files_are_read(tmp_path: Path, keyword: str) -> None:
    """FM-5."""
    result = run(tmp_path, keyword, {"path": "a.js", "pattern": "[bad"}, {"a.js": "x"})
    assert (result.passed, result.status) == (False, None)
    assert result.evidence.startswith("Invalid regex pattern: [bad. Error: ")


@pytest.mark.parametrize(
    ("keyword", "content", "passed", "evidence"),
    [
        pytest.param(
            "file-not-contains",
            "",
            False,
            "Indeterminate: could not read 1 file(s) matching '*.cfg': b.cfg (EACCES)",
            id="FC-6",
        ),
        pytest.param("file-contains", "x", True, "'x' found in a.cfg", id="FC-7"),
        pytest.param(
            "file-contains",
            "",
            False,
            "Indeterminate: could not read 1 file(s) matching '*.cfg': b.cfg (EACCES)",
            id="indeterminate when not negated",
        ),
        pytest.param(
            "file-not-matches",
            "",
            False,
            "Indeterminate: could not read 1 file(s) matching '*.cfg': b.cfg (EACCES)",
            id="indeterminate pattern",
        ),
    ],
)
def test_unreadable_files(
    tmp_path: Path, forbid: Callable[[Path], None], keyword: str, content: str, passed: bool, evidence: str
) -> None:
    (tmp_path / "b.cfg").write_text("x")
    forbid(tmp_path / "b.cfg")
    result = run(tmp_path, keyword, {"path": "*.cfg", **needle(keyword, "x")}, {"a.cfg": content})
    assert (result.passed, result.evidence) == (passed, evidence)
    assert result.metadata is not None
    assert result.metadata["unreadable"] == ([] if passed else ["b.cfg"])


def test_no_fallback_to_the_workspace(tmp_path: Path) -> None:
    """FC-8."""
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    (artifacts / "out.txt").write_text("no")
    config = {"path": "out.txt", "value": "ok"}
    result = run(tmp_path / "work", "file-contains", config, {"out.txt": "ok"}, artifact_dir=str(artifacts))
    assert (result.passed, result.evidence) == (False, "'ok' NOT found in out.txt")
    assert result.metadata == {"root": "artifact", "matchCount": 1, "matches": ["out.txt"], "unreadable": []}


def test_large_files_and_many_files(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(16 * 2**20 + 1)
    (tmp_path / "fits.txt").write_bytes(b"y" * (16 * 2**20 - 1) + b"x")
    result = run(tmp_path, "file-contains", {"path": "big.txt", "value": "x"}, {})
    assert result.evidence == "Indeterminate: could not read 1 file(s) matching 'big.txt': big.txt (too large)"
    assert run(tmp_path, "file-contains", {"path": "*.txt", "value": "x"}, {}).evidence == "'x' found in fits.txt"
    for number in range(10_001):
        (tmp_path / f"{number}.n").touch()
    result = run(tmp_path, "file-not-contains", {"path": "*.n", "value": "x"}, {})
    assert (result.passed, result.evidence) == (False, "Too many files matching '*.n': 10001 (limit 10000)")


if sys.platform != "win32":

    def test_links_and_pipes(tmp_path: Path) -> None:
        work = tmp_path / "work"
        work.mkdir()
        (tmp_path / "secret").write_text("x")
        (work / "a-dangling").symlink_to("nowhere")
        (work / "b-loop").symlink_to("b-loop")
        (work / "c-outside").symlink_to("../secret")
        os.mkfifo(work / "d-pipe")
        (work / "up").symlink_to("..")
        result = run(work, "file-not-contains", {"path": "*-*", "value": "x"}, {})
        assert result.evidence == (
            "Indeterminate: could not read 4 file(s) matching '*-*': a-dangling (ENOENT), b-loop (ELOOP), "
            "c-outside (outside workspace), d-pipe (EINVAL)"
        )
        result = run(work, "file-contains", {"path": "up/secret", "value": "x"}, {})
        assert result.evidence == (
            "Indeterminate: could not read 1 file(s) matching 'up/secret': up/secret (outside workspace)"
        )
        (work / "e-inside").symlink_to("real")
        assert run(work, "file-contains", {"path": "e-inside", "value": "x"}, {"real": "x"}).passed


@pytest.mark.parametrize("keyword", CONTENT_KEYWORDS)
@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'path' is required"),
        ({"path": "a"}, "'{key}' is required"),
        ({"path": "a", "{key}": 1}, "'{key}' must be a string"),
        ({"path": "a", "{key}": "x", "mode": 1}, "unknown key 'mode'"),
    ],
)
def test_invalid_configs(keyword: str, config: dict[str, Any], problem: str) -> None:
    key = next(iter(needle(keyword, "")))
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(
            RECORDS[keyword], {name.format(key=key): value for name, value in config.items()}
        )
    assert str(caught.value) == f"Invalid config for {keyword}: {problem.format(key=key)}"


def test_an_empty_value_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="'value' must not be empty"):
        PluginHost.from_objects(plugin).parse_config(RECORDS["file-contains"], {"path": "a", "value": ""})
