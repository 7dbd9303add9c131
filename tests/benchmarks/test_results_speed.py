"""How fast runs are read into a store, and how fast the API answers from it; prints figures, asserts none of them."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from vally_command_results.importing.importer import ImportOptions
from vally_command_results.importing.session import import_directories
from vally_command_results.server.app import make_app
from vally_command_results.server.guard import AllowedHosts
from vally_command_results.server.site import Site
from vally_command_results.store.opening import open_store

pytestmark = pytest.mark.heavy
PATHS = ("/runs", "/outcomes", "/outcomes?verdict=fail", "/trends", "/graders", "/facets", "/comparisons")


def record(run: int, trial: int, events: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"inputTokens": 2500, "outputTokens": 347, "totalTokens": 2847, "callCount": 2}
    metrics = {"turnCount": 4, "toolCallCount": 6, "wallTimeMs": 7900, "errorCount": 0, "tokenUsage": usage}
    passed = trial % 3 > 0
    grade = {"name": "g", "graderType": "output-contains", "kind": "code", "passed": passed, "score": float(passed)}
    return {
        "type": "trial-result", "runId": f"r{run}", "itemId": f"e::s{trial // 4}::{trial % 4}",
        "evalName": "e", "evalFilePath": "e.yaml", "model": f"m{trial % 2}", "stimulus": f"s{trial // 4}",
        "trialIndex": trial % 4, "totalTrials": 4, "status": "success", "durationMs": 8300 + trial,
        "startedAt": f"2026-07-{1 + run % 28:02d}T01:00:14.020Z",
        "trajectory": {"output": "done", "metrics": metrics, "events": events},
        "gradeResult": {"kind": "code", "passed": passed, "score": float(passed), "details": [grade]},
    }  # fmt: skip


def calls(number: int) -> list[dict[str, Any]]:
    stamp = "2026-07-24T01:00:00.000Z"
    found = []
    for place in range(number // 2):
        data = {"toolName": "bash", "toolCallId": f"c{place}"}
        found.append(
            {"type": "tool_call", "timestamp": stamp, "turn": 0, "data": {**data, "arguments": {"command": "ls"}}}
        )
        found.append(
            {
                "type": "tool_result",
                "timestamp": stamp,
                "turn": 0,
                "data": {**data, "success": True, "result": "x" * 100},
            }
        )
    return found


@pytest.mark.parametrize(("runs", "trials", "events"), [(40, 500, 0), (4, 500, 100)])
def test_reading_runs_into_a_store(tmp_path: Path, runs: int, trials: int, events: int) -> None:
    for run in range(runs):
        path = tmp_path / "runs" / f"run{run:03d}" / "results.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(record(run, trial, calls(events))) + "\n" for trial in range(trials)))
    store = open_store("history.db", tmp_path, create=True)
    began, cpu = time.perf_counter(), time.process_time()
    done = import_directories(store, [(tmp_path / "runs", "runs")], ImportOptions())
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    assert done.outcomes == runs * trials
    rates = f"{done.outcomes / wall:,.0f}/s, {done.outcomes / used:,.0f}/s of processor time"
    print(f"\n{done.outcomes} trials of {events} events: {rates}")
    answers(Site(store, "store"))


def answers(site: Site) -> None:
    app = make_app(site, hosts=AllowedHosts.of("localhost", ()), pages=False)
    with TestClient(app, base_url="http://localhost") as client:
        run_id = client.get("/api/runs").json()["items"][0]["id"]
        for path in (*PATHS, f"/runs/{run_id}", f"/runs/{run_id}/matrix", f"/runs/{run_id}/outcomes"):
            times = []
            for _ in range(5):
                began = time.perf_counter()
                assert client.get(f"/api{path}").status_code == 200
                times.append((time.perf_counter() - began) * 1000)
            print(f"  {path.replace(run_id, 'ID'):28} {statistics.median(times):7.1f} ms")
    site.store.close()
