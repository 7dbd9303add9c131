"""Killing `vally ingest` or `vally serve` at any moment leaves a store that opens and can be completed."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy
RUNS, TRIALS = 30, 200


def make_runs(root: Path) -> None:
    for number in range(RUNS):
        directory = root / f"run-{number:02d}"
        directory.mkdir(parents=True)
        records = [
            {
                "type": "trial-result",
                "runId": f"r{number}",
                "itemId": f"e::main::m::s{trial}::trial-0",
                "stimulus": f"s{trial}",
                "status": "success",
                "startedAt": "2026-01-01T00:00:00.000Z",
                "trajectory": {"output": "x" * 200, "events": []},
                "gradeResult": {"passed": True, "score": 1.0},
            }
            for trial in range(TRIALS)
        ]
        (directory / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def vally(*words: object) -> list[str]:
    return [sys.executable, "-m", "vally", *map(str, words)]


def outcomes_by_run(store: Path) -> dict[str, int]:
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        joined = "runs LEFT JOIN outcomes ON run_id = runs.id"
        query = f"SELECT runs.recorded_run_id, count(outcomes.id) FROM {joined} GROUP BY runs.id"
        return dict(connection.execute(query).fetchall())


def kill(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


@pytest.mark.parametrize("seed", range(6))
def test_an_import_that_was_killed_is_completed_by_the_next(tmp_path: Path, seed: int) -> None:
    make_runs(tmp_path / "runs")
    store = tmp_path / "history.db"
    process = subprocess.Popen(vally("ingest", "runs", "--store", store), cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    # The kill comes behind some runs that were reported, at a random moment within the next one.
    for _ in range(1 + 4 * seed):
        process.stdout.readline()
    time.sleep(random.Random(seed).random() * 0.05)
    kill(process)
    process.stdout.close()
    found = outcomes_by_run(store)
    assert len(found) >= 1 + 4 * seed
    # No run is there in part.
    assert set(found.values()) == {TRIALS}
    done = subprocess.run(
        vally("ingest", "runs", "--store", store), cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert outcomes_by_run(store) == {f"r{number}": TRIALS for number in range(RUNS)}


def test_a_server_that_was_killed_leaves_its_store_whole(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs")
    store = tmp_path / "history.db"
    words = vally("serve", "runs", "--store", store, "--port", 0, "--api-only")
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert b"Serving 30 runs" in process.stdout.readline()
    kill(process)
    process.stdout.close()
    assert outcomes_by_run(store) == {f"r{number}": TRIALS for number in range(RUNS)}


def test_a_server_ends_with_success_on_a_signal(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            vally("serve", "runs", "--port", 0, "--api-only"), cwd=tmp_path, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        while b"Ctrl-C" not in process.stdout.readline():
            pass
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        process.stdout.close()
