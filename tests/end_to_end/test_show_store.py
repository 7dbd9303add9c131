"""Runs shown out of a store that `vally ingest` filled."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from vally.testing import CliResult, ProjectBuilder, run_cli

LONG = "x" * 400


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A directory with a store of two runs, whose own directories are gone."""
    project = ProjectBuilder(tmp_path)
    said = {"type": "output-contains", "config": {"substring": "hello"}}
    for name in ("hello", "goodbye"):
        project.eval(
            "e", [{"name": name, "prompt": f"say {name} {LONG}", "graders": [said]}], defaults={"executor": "mock"}
        )
        run_cli(["eval", "-e", "evals/e/eval.yaml", "--run-id", f"run-{name}"], cwd=tmp_path)
    assert run_cli(["ingest", "vally-results", "--store", "h.db"], cwd=tmp_path).exit_code == 0
    shutil.rmtree(tmp_path / "vally-results")
    return tmp_path


def vally(root: Path, *words: str) -> CliResult:
    result = run_cli([*words, "--store", "h.db"], cwd=root)
    assert "Traceback" not in result.stderr
    return result


def test_the_list(store: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(vally(store, "runs", "--output", "json").stdout)["runs"]
    assert [(row["runId"], row["verdict"], row["trials"], row["passRate"]) for row in rows] == [
        ("run-goodbye", "fail", 1, 0),
        ("run-hello", "pass", 1, 1),
    ]
    assert [row["backend"] for row in rows] == ["local", "local"]
    assert "e" in vally(store, "runs", "--eval", "e").stdout
    assert [path.name for path in store.glob("h.db*")] == ["h.db"]
    assert len(vally(store, "runs", "--failed").stdout.splitlines()) == 2


def test_a_run_and_its_trial(store: Path) -> None:
    assert "━━━ goodbye ━━━" in vally(store, "show").stdout
    assert "PASSED  1 of 1 evals passed" in vally(store, "show", "run-hello").stdout
    one = vally(store, "show", "run-hello", "--stimulus", "hello", "--full").stdout
    assert f"say hello {LONG}" in one
    records = json.loads(vally(store, "show", "run-hello", "--output", "json").stdout)
    assert [record["stimulus"] for record in records] == ["hello"]
    assert "Output directory" not in one


def test_what_is_not_there(store: Path) -> None:
    unknown = vally(store, "show", "run-helo")
    assert (unknown.exit_code, "did you mean 'run-hello'?" in unknown.stderr) == (1, True)
    for name, text, code in (
        ("missing.db", "no file 'missing.db'", 1),
        ("evals/e/eval.yaml", "is no store", 1),
        ("postgresql://nowhere/x", "only SQLite files", 2),
    ):
        result = run_cli(["runs", "--store", name], cwd=store)
        assert (result.exit_code, text in result.stderr) == (code, True), result.stderr
    with sqlite3.connect(store / "other.db") as other:
        other.execute("CREATE TABLE runs (id TEXT)")
    other.close()
    assert "is no store of vally" in run_cli(["show", "--store", "other.db"], cwd=store).stderr


def test_a_side_file_stays_inside(store: Path) -> None:
    import zlib

    with sqlite3.connect(store / "h.db") as opened:
        (run_id,) = opened.execute("SELECT id FROM runs WHERE recorded_run_id = 'run-hello'").fetchone()
        body = zlib.compress(b"planted")
        opened.execute("INSERT INTO extra_files VALUES (?, ?, ?)", (run_id, "../../planted", body))
    opened.close()
    assert vally(store, "show", "run-hello").exit_code == 0
    assert not list(store.parent.rglob("planted"))
