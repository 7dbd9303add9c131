"""Executors that misbehave: one record each, with the right words, and no other trial suffers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from programs import check_closed, evaluate, finish, records_of, run_dir, start, until, write_spec

pytestmark = pytest.mark.heavy


def by_stimulus(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["stimulus"]: record for record in records if record["type"] == "trial-result"}


FAILURES = {
    ("bad", "raise"): ("executor-exception", "OSError: no such device"),
    ("bad", "unprintable"): ("executor-exception", "Unprintable"),
    ("bad", "exit"): ("executor-exception", "SystemExit: 0"),
    ("bad", "stop-iteration"): ("executor-exception", "StopIteration"),
    ("bad", "none"): ("executor-exception", "the executor returned NoneType instead of a trajectory"),
    ("bad", "text"): ("executor-exception", "the executor returned str instead of a trajectory"),
    ("abad", "raise"): ("executor-exception", "OSError: no such device"),
    ("abad", "exit"): ("executor-exception", "SystemExit: 0"),
    ("abad", "cancel"): ("executor-exception", "the plugin's own task was cancelled"),
}


@pytest.mark.parametrize(("executor", "word"), FAILURES, ids=["-".join(key) for key in FAILURES])
def test_what_an_executor_throws_is_the_error_of_its_trial(tmp_path: Path, executor: str, word: str) -> None:
    write_spec(tmp_path, [word, "fine"], executor=executor)
    result = evaluate(tmp_path)
    assert result.exit_code == 1
    summary = check_closed(result.records, 2)
    assert (summary["hadExecutionErrors"], summary["partial"]) == (True, False)
    found = by_stimulus(result.records)
    code, text = FAILURES[executor, word]
    assert found[word]["status"] == "error"
    assert found[word]["errorInfo"]["code"] == code
    assert text in found[word]["error"]
    assert found[word]["gradeResult"] is None
    assert found["fine"]["gradeResult"]["passed"] is True


def test_executors_that_ignore_their_deadline_are_given_up(tmp_path: Path) -> None:
    write_spec(tmp_path, ["hang", "fine"])
    write_spec(tmp_path, ["hang", "hang-thread", "fine"], name="async.yaml", executor="abad")
    code, _, _ = finish(start(tmp_path, "-e", "async.yaml", "--timeout", "300ms"))
    assert code == 1
    records = records_of(tmp_path)
    check_closed(records, 5)
    for record in records[:-1]:
        if record["stimulus"] == "fine":
            assert record["gradeResult"]["passed"] is True
        else:
            assert (record["error"], record["errorInfo"]["code"]) == ("Timeout after 300ms", "timeout")
    assert not (run_dir(tmp_path) / ".lock").exists()


def test_values_that_json_lacks_are_recorded_as_far_as_they_can_be(tmp_path: Path) -> None:
    write_spec(tmp_path, ["nan", "surrogate", "cyclic", "objects", "fine"])
    result = evaluate(tmp_path, "--output", "jsonl")
    assert result.exit_code == 0
    for line in result.stdout.split("\n")[:-1]:
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    records = by_stimulus(result.records)
    check_closed(result.records, 5)
    assert {record["gradeResult"]["passed"] for record in records.values()} == {True}
    nan = records["nan"]
    assert nan["trajectory"]["metadata"]["nan"] is None
    assert any("/trajectory/metadata/nan" in text for text in nan["warnings"])
    assert records["surrogate"]["trajectory"]["metadata"]["text"] == "a\ufffdb\u2028c"
    assert records["cyclic"]["trajectory"]["metadata"]["loop"] == {"a": 1, "self": "dict", "again": ["dict", "dict"]}
    assert records["objects"]["trajectory"]["metadata"]["object"]["path"] == "x"


def test_a_trajectory_of_wrong_types_is_an_error_of_its_trial(tmp_path: Path) -> None:
    write_spec(tmp_path, ["wrong-types", "fine"])
    result = evaluate(tmp_path)
    assert result.exit_code == 1
    check_closed(result.records, 2)
    found = by_stimulus(result.records)
    assert found["wrong-types"]["status"] == "error"
    assert found["fine"]["gradeResult"]["passed"] is True


def test_texts_of_executors_reach_no_terminal_as_commands(tmp_path: Path) -> None:
    write_spec(tmp_path, ["escape"])
    result = evaluate(tmp_path, "--verbose", env={"GITHUB_ACTIONS": "true"})
    assert "\x1b" not in result.stdout + result.stderr
    assert "\x07" not in result.stdout + result.stderr
    assert not any(line.startswith("::error::x") for line in (result.stdout + result.stderr).splitlines())


@pytest.mark.parametrize("word", ["raise", "exit", "hang"])
@pytest.mark.parametrize("method", ["shutdown", "cleanup"])
def test_an_executor_that_does_not_end_well_changes_no_result(tmp_path: Path, method: str, word: str) -> None:
    write_spec(tmp_path, ["fine"], executor=f"{method}-{word}")
    code, _, err = finish(start(tmp_path, "--shutdown-timeout", "500ms"))
    assert code == 0, err
    assert list((tmp_path / "scratch").iterdir()) == []
    records = records_of(tmp_path)
    summary = check_closed(records, 1)
    assert summary["passed"] is True
    told = err if method == "shutdown" else " ".join(records[0].get("warnings", []))
    assert {"raise": "OSError: no such device", "exit": "SystemExit: 0", "hang": "0.5s"}[word] in told


def test_a_trajectory_of_200_megabytes_needs_bounded_memory(tmp_path: Path) -> None:
    write_spec(tmp_path, ["huge"])
    process = start(tmp_path)
    peak = 0

    def watch() -> bool:
        nonlocal peak
        peak = max(peak, resident_kib(process.pid))
        return process.poll() is not None

    until(watch)
    code, _, err = finish(process)
    assert code == 0, err
    path = run_dir(tmp_path) / "results.jsonl"
    line = path.read_bytes().splitlines()[0]
    assert len(line) <= 8 * 2**20
    trajectory = json.loads(line)["trajectory"]
    assert trajectory["truncated"] is True
    sidecar = path.parent / trajectory["trajectoryPath"]
    whole = json.loads(sidecar.read_bytes())
    assert sum(len(item["data"].get("result", "")) for item in whole["events"]) == 200 * 2**20
    assert peak < 1_300_000, f"{peak} KiB"


def resident_kib(pid: int) -> int:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss // 1024)
    except psutil.Error:
        return 0
