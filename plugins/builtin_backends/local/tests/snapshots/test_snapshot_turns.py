"""One diff per conversation turn, and what a failed snapshot means for it."""

from __future__ import annotations

import shutil

import pytest

from vally_backend_local.git_process import SnapshotError


def test_each_turn_shows_its_own_changes(trial):
    trial.write("a.txt", "0\n")
    trial.baseline()
    for number in range(3):
        trial.write("a.txt", f"{number + 1}\n")
        trial.snapshots.turn(number)
    results = list(trial.snapshots.turn_diffs())
    assert [result.turn for result in results] == [0, 1, 2]
    for number, result in enumerate(results):
        assert f"-{number}\n+{number + 1}\n" in result.diff.text
    assert "-0\n+3\n" in trial.diff()


def test_a_turn_without_changes(trial):
    trial.baseline()
    trial.write("a.txt", "x\n")
    trial.snapshots.turn(0)
    trial.snapshots.turn(1)
    assert [bool(result.diff.text) for result in trial.snapshots.turn_diffs()] == [True, False]


def test_a_file_that_becomes_ignored_later_is_not_deleted(trial):
    trial.baseline()
    trial.write("a.txt", "x\n")
    trial.snapshots.turn(0)
    trial.write(".gitignore", "a.txt\n")
    trial.snapshots.turn(1)
    assert "a/a.txt" not in list(trial.snapshots.turn_diffs())[1].diff.text


@pytest.mark.parametrize("_", [pytest.param(None, id="SD-5")])
def test_a_failed_turn(trial, _):
    trial.baseline()
    trial.snapshots.turn(0)
    away = trial.workspace.with_name("away")
    trial.workspace.rename(away)
    trial.snapshots.turn(1)
    first, second = trial.snapshots.turn_diffs()
    assert (first.turn, first.diff.text, first.diff.error) == (0, "", None)
    assert (second.turn, second.diff.text) == (1, None)
    assert second.diff.error == "the workspace directory no longer exists"


def test_the_turn_after_a_failed_one_shows_no_foreign_changes(trial):
    trial.baseline()
    away = trial.workspace.with_name("away")
    trial.workspace.rename(away)
    trial.snapshots.turn(0)
    away.rename(trial.workspace)
    trial.write("a.txt", "of turn 0 or 1\n")
    trial.snapshots.turn(1)
    trial.write("a.txt", "of turn 2\n")
    trial.snapshots.turn(2)
    _, second, third = trial.snapshots.turn_diffs()
    assert second.diff.text is None
    assert second.diff.error == "the snapshot at the end of turn 0 is missing"
    assert "-of turn 0 or 1\n+of turn 2\n" in third.diff.text
    assert "+of turn 2\n" in trial.diff()


def test_without_a_baseline_everything_fails_with_its_reason(make_trial):
    trial = make_trial()
    shutil.rmtree(trial.workspace)
    with pytest.raises(SnapshotError, match="the workspace directory no longer exists"):
        trial.snapshots.baseline()
    trial.workspace.mkdir()
    trial.snapshots.turn(0)
    (turn,) = trial.snapshots.turn_diffs()
    assert turn.diff.error == trial.snapshots.capture().diff.error == "the workspace directory no longer exists"


def test_a_snapshotter_that_was_never_used(trial):
    assert trial.snapshots.capture().diff.error == "no baseline was taken"
    assert list(trial.snapshots.turn_diffs()) == []
