"""The run directory and the files below it."""

from __future__ import annotations

import hashlib
import json
import stat
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from vally.errors import VallyError
from vally.model.results import TrialResult
from vally.run.run_dir import ManifestFacts, ManifestSpec, RunDirectory, directory_name, hash_values

START = datetime(2026, 7, 24, 1, 0, 0, 999, tzinfo=UTC)
NAME = "2026-07-24T01-00-00-000Z"
SEGMENTS = ("my-eval", "a-b", "default-model", "0")


def test_directories_are_named_by_their_start(tmp_path: Path) -> None:
    made = [RunDirectory.create(tmp_path / "deep" / "out", START).path.name for _ in range(3)]
    assert made == [NAME, f"{NAME}-2", f"{NAME}-3"]
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == sorted(made)
    assert directory_name(START.astimezone(timezone(timedelta(hours=5)))) == NAME


def test_an_output_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VallyError) as caught:
        RunDirectory.create(tmp_path / "file", START)
    assert caught.value.where == str(tmp_path / "file")
    assert caught.value.hints


def test_files_of_a_trial_are_made_on_demand(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, START)
    directory = run.trial_dir(SEGMENTS)
    assert directory == run.path / "my-eval" / "a-b" / "default-model" / "0"
    assert not directory.exists()
    assert run.sidecar(SEGMENTS, "workspace.diff") == "my-eval/a-b/default-model/0/workspace.diff"
    assert run.write_trial_file(SEGMENTS, "workspace.diff", "+x\n").read_bytes() == b"+x\n"
    assert run.make_trial_dir(SEGMENTS) == directory
    assert [path.name for path in directory.iterdir()] == ["workspace.diff"]
    assert run.results_path == run.path / "results.jsonl"


def test_metadata_has_the_original_names(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, START)
    result = TrialResult(
        run_id="r",
        item_id="i",
        eval_name="my eval",
        eval_file_path="e/eval.yaml",
        stimulus="a/b",
        trial_index=0,
        total_trials=2,
        status="error",
    )
    text = run.write_metadata(SEGMENTS, result).read_text()
    assert json.loads(text) == {
        "variant": "main",
        "stimulusName": "a/b",
        "evalName": "my eval",
        "evalFilePath": "e/eval.yaml",
        "model": "default-model",
        "trialIndex": 0,
        "status": "error",
    }
    assert text.startswith('{\n  "variant"')
    assert text.endswith("}\n")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_private_files(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, START)
    log = run.session_log(SEGMENTS)
    run.write_manifest(ManifestFacts(run_id="r", tool_version="1", started_at="s"))
    assert (log.name, log.read_bytes()) == ("events.jsonl", b"")
    assert (_mode(log), _mode(run.manifest_path)) == (0o600, 0o600)
    log.chmod(0o644)
    log.write_text("old")
    assert run.session_log(SEGMENTS) == log
    assert (_mode(log), log.read_bytes()) == (0o600, b"")


def test_the_manifest(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, START)
    facts = ManifestFacts(
        run_id="r",
        tool_version="0.1.0",
        started_at="2026-07-24T01:00:00.000Z",
        project_file=".vally.yaml",
        seed=7,
        options={"workers": 3},
        plugins=[{"name": "x", "version": "1"}],
        specs=[
            ManifestSpec(path="e.yaml", name="e", sha256="ab", defaults={"runs": 1}),
            ManifestSpec(path="e.yaml", name="e", sha256="cd", variant="on", threshold=0.5),
        ],
        skills={"skills/s": "ef"},
        params={"key": "secret-value"},
        backend_args={"image": "i", "mount": ["a", "b"]},
        backend={"version": "2"},
        items=["e::main::m::s::trial-0"],
    )
    run.write_manifest(facts)
    text = run.manifest_path.read_text()
    assert json.loads(text) == {
        "type": "run-manifest",
        "version": 1,
        "runId": "r",
        "kind": "eval",
        "toolVersion": "0.1.0",
        "startedAt": "2026-07-24T01:00:00.000Z",
        "projectFile": ".vally.yaml",
        "seed": 7,
        "options": {"workers": 3},
        "plugins": [{"name": "x", "version": "1"}],
        "specs": [
            {"path": "e.yaml", "name": "e", "sha256": "ab", "defaults": {"runs": 1}},
            {
                "path": "e.yaml",
                "name": "e",
                "variant": "on",
                "sha256": "cd",
                "defaults": {},
                "scoring": {"threshold": 0.5},
            },
        ],
        "skills": [{"path": "skills/s", "sha256": "ef"}],
        "params": {"key": hashlib.sha256(b"secret-value").hexdigest()},
        "backendArgs": {
            "image": hashlib.sha256(b"i").hexdigest(),
            "mount": hashlib.sha256(b'["a","b"]').hexdigest(),
        },
        "backend": {"version": "2"},
        "items": ["e::main::m::s::trial-0"],
    }
    assert "secret-value" not in text
    assert list(json.loads(text))[:4] == ["type", "version", "runId", "kind"]


def test_hashes_tell_values_apart() -> None:
    assert hash_values({"a": "x"}) == hash_values({"a": "x"}) != hash_values({"a": "y"})
    assert hash_values({"a": ["x"]}) != hash_values({"a": "x"})


def test_a_run_directory_can_be_locked(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, START)
    with run.lock():
        assert [path.name for path in run.path.iterdir()] == [".lock"]
    assert list(run.path.iterdir()) == []
