"""Records read back in plan order, whatever their order in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import RunRecords, TrialResult
from vally.testing import ScriptedRun, event, trajectory, trial_result

ODD = "na\ud800me"


def recorded(directory: Path, results: list[TrialResult]) -> tuple[ScriptedRun, RunRecords]:
    run = ScriptedRun(directory, results)
    for _ in run.events():
        pass
    return run, RunRecords(run.run_dir / "results.jsonl")


def test_the_order_of_the_plan(tmp_path: Path) -> None:
    made = [("a", 1), ("b", 0), ("a", 0), ("b", 1)]
    run, records = recorded(tmp_path, [trial_result(name, trial_index=at, total_trials=2) for name, at in made])
    (planned,) = run.evals
    assert [(item.stimulus, item.trial_index) for item in records.of(planned)] == [(n, i) for n in "ab" for i in (0, 1)]
    assert [(item.stimulus, item.trial_index) for item in records.of(planned, "b")] == [("b", 0), ("b", 1)]


def test_evals_are_told_apart(tmp_path: Path) -> None:
    results = [trial_result("s", model=model, duration_ms=at) for at, model in enumerate(("x", "y"))]
    run, records = recorded(tmp_path, results)
    assert [[item.duration_ms for item in records.of(planned)] for planned in run.evals] == [[0], [1]]


def test_what_has_no_record_is_left_out(tmp_path: Path) -> None:
    run, records = recorded(tmp_path, [trial_result("s", trial_index=1, total_trials=3)])
    assert [item.trial_index for item in records.of(run.evals[0])] == [1]


def test_of_two_records_the_later_counts(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path, [trial_result("s", duration_ms=1), trial_result("s", duration_ms=2)])
    records = RunRecords(run.run_dir / "results.jsonl")
    assert [item.duration_ms for item in records.of(run.evals[0])] == [2]


def test_events_are_left_out(tmp_path: Path) -> None:
    said = trajectory(event("assistant_message", content="hello"), event("turn_end", turn_id="0"))
    run, records = recorded(tmp_path, [trial_result("s", trajectory=said)])
    (record,) = records.of(run.evals[0])
    assert record.trajectory is not None
    assert record.trajectory.events == []
    assert record.trajectory.output == "hello"
    assert record.trajectory.metrics is not None
    assert record.trajectory.metrics.turn_count == 1


def test_names_that_no_record_can_hold(tmp_path: Path) -> None:
    run, records = recorded(tmp_path, [trial_result(ODD, eval_file_path=ODD, model=ODD)])
    assert [item.stimulus for item in records.of(run.evals[0])] == ["na\ufffdme"]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        RunRecords(tmp_path / "none")
