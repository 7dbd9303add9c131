"""`vally runs`: what a list says about runs in every state."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import timestamp
from vally.testing import CliResult, trial_result

Vally = Callable[..., CliResult]
WriteRun = Callable[..., Path]
Make = Any
OLDER = "vally-results/2026-01-02T03-04-05-678Z"


def listed(vally: Vally, *words: str) -> list[dict[str, Any]]:
    result = vally("runs", "--output", "json", *words)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["type"], document["version"]) == ("run-list", 1)
    rows: list[dict[str, Any]] = document["runs"]
    return rows


def test_a_line_per_run_the_newest_first(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    write_run(*make.three_trials(), name="2026-01-02T03-04-05-678Z-2")
    write_run(*make.three_trials(), name="2025-01-01T00-00-00-000Z")
    lines = vally("runs").stdout.splitlines()
    assert lines[0].split() == ["STARTED", "RUN", "KIND", "EVALS", "TRIALS", "PASS", "RATE", "VERDICT", "DURATION"]
    assert [line.split()[2] for line in lines[1:]] == [
        "vally-results/2026-01-02T03-04-05-678Z-2",
        "vally-results/2026-01-02T03-04-05-678Z",
        "vally-results/2025-01-01T00-00-00-000Z",
    ]
    expected = f"2026-01-02 03:04:05 {OLDER} eval scripted 3 66.7% fail 10.0s"
    assert lines[2].split() == expected.split()


def test_where_runs_were_is_told_unless_all_were_here(write_run: WriteRun, vally: Vally) -> None:
    write_run(trial_result("s", backend="local"), trial_result("s", backend="local"), name="2024-01-01T00-00-00-000Z")
    write_run(trial_result("s"), name="2024-01-02T00-00-00-000Z")
    assert "BACKEND" not in vally("runs").stdout
    write_run(trial_result("s", backend="ray/\x1b[31mcontainer\nx"), name="2024-01-03T00-00-00-000Z")
    head, *lines = vally("runs").stdout.splitlines()
    assert head.endswith("  BACKEND")
    assert [line[head.index("BACKEND") :] for line in lines] == ["ray/container x", "–", "local"]
    assert [row["backend"] for row in listed(vally)] == ["ray/\x1b[31mcontainer\nx", None, "local"]


def test_no_runs(vally: Vally) -> None:
    result = vally("runs")
    assert (result.exit_code, result.stdout) == (0, "no runs in vally-results, vally-experiment-results\n")
    assert listed(vally) == []
    missing = vally("runs", "nowhere")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "no run directory, results file or run id 'nowhere'" in missing.stderr


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"passed": True}, "pass"),
        ({"passed": False}, "fail"),
        ({"passed": False, "hadExecutionErrors": True}, "error"),
        ({"passed": False, "hadExecutionErrors": True, "partial": True, "stopReason": "interrupted"}, "partial"),
    ],
)
def test_the_verdict_of_a_finished_run(
    changes: dict[str, Any], verdict: str, write_run: WriteRun, make: Make, vally: Vally
) -> None:
    write_run(*make.three_trials(), summary={**make.summary, **changes})
    assert [row["verdict"] for row in listed(vally)] == [verdict]
    assert len(listed(vally, "--failed")) == (verdict != "pass")


def test_a_run_without_summary_is_running_or_incomplete(write_run: WriteRun, make: Make, vally: Vally) -> None:
    directory = write_run(*make.three_trials(), summary=None, tail=b'{"torn')
    row = listed(vally)[0]
    assert (row["verdict"], row["trials"], row["passRate"], row["durationMs"]) == ("incomplete", 3, 2 / 3, None)
    assert "line 4: not valid JSON" in vally("runs").stderr
    holder = {"host": platform.node(), "pid": os.getpid(), "startedAt": timestamp()}
    (directory / ".lock").write_text(json.dumps(holder))
    assert listed(vally)[0]["verdict"] == "running"


def test_filters_and_limit(write_run: WriteRun, make: Make, vally: Vally) -> None:
    for day in range(1, 6):
        write_run(*make.three_trials(), name=f"2026-01-0{day}T00-00-00-000Z")
    assert [row["directory"][-24:-14] for row in listed(vally, "--limit", "2")] == ["2026-01-05", "2026-01-04"]
    assert len(listed(vally, "--eval", "scr*")) == 5
    assert listed(vally, "--eval", "other*") == []
    assert vally("runs", "--limit", "0").exit_code == 2
    assert vally("runs", "--eval", "[").exit_code == 1


def test_a_tree_and_what_is_not_of_a_run_in_it(tmp_path: Path, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials(), name="deep/down/run")
    foreign = tmp_path / "vally-results" / "foreign"
    foreign.mkdir()
    (foreign / "results.jsonl").write_text('{"type": "something"}\nnot json\n')
    result = vally("runs", "vally-results")
    assert len(result.stdout.splitlines()) == 2
    assert "vally-results/foreign: results.jsonl is not of a run" in result.stderr


def test_a_loop_of_links_ends(tmp_path: Path, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    (tmp_path / "vally-results" / "again").symlink_to(tmp_path / "vally-results")
    assert len(listed(vally)) == 1


def test_an_experiment_is_one_run(tmp_path: Path, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials(), name="run/a")
    write_run(*make.three_trials(), name="run/b", summary={**make.summary, "passed": True})
    write_run(name="run/unselected", summary=None)
    directory = tmp_path / "vally-results" / "run"
    manifest = {"type": "experiment-manifest", "experiment": {"runId": "e-1", "name": "x"}}
    (directory / "experiment-manifest.json").write_text(json.dumps(manifest))
    (row,) = listed(vally)
    assert (row["kind"], row["runId"], row["trials"], row["verdict"]) == ("experiment", "e-1", 6, "fail")


def test_a_summary_is_found_behind_a_long_line(write_run: WriteRun, make: Make, vally: Vally) -> None:
    names = [f"stimulus {number} {'x' * 100}" for number in range(1000)]
    evals = [{**make.summary["evals"][0], "stats": {"stimuli": [{"name": name} for name in names]}}]
    write_run(trial_result("s", make.said("ok")), summary={**make.summary, "evals": evals})
    assert listed(vally)[0]["trials"] == 3
