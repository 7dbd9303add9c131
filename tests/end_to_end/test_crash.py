"""What is left of a run whose program is killed: every finished trial, and at most one torn line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vally import index_results

TRIALS = 200


def start(root: Path, *, delay_ms: int, trials: int) -> subprocess.Popen[bytes]:
    fixture = root / "fixtures"
    fixture.mkdir()
    (fixture / "s.json").write_text(json.dumps({"output": "hi", "delayMs": delay_ms, "files": {"a.txt": "1\n"}}))
    spec: dict[str, Any] = {
        "name": "crash",
        "defaults": {"executor": {"name": "mock", "config": {"fixtureDir": "fixtures"}}, "runs": trials},
        "stimuli": [
            {"name": "s", "prompt": "p", "graders": [{"type": "output-contains", "config": {"substring": "hi"}}]}
        ],
    }
    (root / "eval.yaml").write_text(json.dumps(spec))
    with (root / "progress.txt").open("wb") as progress:
        return subprocess.Popen(
            [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out"],
            cwd=root,
            env={"PATH": os.environ["PATH"], "HOME": str(root), "VALLY_CACHE_DIR": str(root / "cache")},
            stdout=subprocess.DEVNULL,
            stderr=progress,
        )


def reported(root: Path) -> int:
    """How many trials the program has told people about: an account that does not come from the results file."""
    return (root / "progress.txt").read_text(encoding="utf-8").count("] ✔ ")


def results(root: Path) -> Path | None:
    found = list(root.glob("out/*/results.jsonl"))
    return found[0] if found else None


def finished(root: Path) -> int:
    path = results(root)
    return path.read_bytes().count(b"\n") if path else 0


def wait_for(root: Path, count: int) -> None:
    end = time.monotonic() + 60
    while finished(root) < count:
        assert time.monotonic() < end, "no trial finished"
        time.sleep(0.01)


def test_a_killed_run_keeps_every_finished_trial(tmp_path: Path) -> None:
    process = start(tmp_path, delay_ms=20, trials=TRIALS)
    end = time.monotonic() + 60
    while reported(tmp_path) < 20:
        assert time.monotonic() < end, "no trial finished"
        time.sleep(0.01)
    process.kill()
    process.wait()
    path = results(tmp_path)
    assert path is not None
    index = index_results(path)
    assert 20 <= reported(tmp_path) <= len(index.entries) < TRIALS
    assert [problem.code for problem in index.problems] in ([], ["torn-record"])
    assert index.summary is None
    for record in index.records():
        assert (record["status"], record["gradeResult"]["passed"]) == ("success", True)


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    process = start(tmp_path, delay_ms=0, trials=3)
    assert process.wait() == 0
    path = results(tmp_path)
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    whole = b"".join(lines[:2])
    for length in range(1, len(lines[2]) - 1, 97):
        path.write_bytes(whole + lines[2][:length])
        index = index_results(path)
        assert len(index.entries) == 2
        assert [problem.code for problem in index.problems] == ["torn-record"]


def test_an_interrupted_run_has_one_record_per_planned_trial(tmp_path: Path) -> None:
    process = start(tmp_path, delay_ms=50, trials=TRIALS)
    wait_for(tmp_path, 10)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    path = results(tmp_path)
    assert path is not None
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records[-1]["type"] == "run-summary"
    assert (records[-1]["partial"], records[-1]["stopReason"]) == (True, "interrupted")
    items = [record["itemId"] for record in records[:-1]]
    assert len(items) == len(set(items)) == TRIALS
    statuses = {record["status"] for record in records[:-1]}
    assert statuses == {"success", "skipped"}
    assert not (path.parent / ".lock").exists()
