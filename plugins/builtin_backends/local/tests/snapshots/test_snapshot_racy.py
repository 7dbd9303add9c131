"""Edits that look like no edit: same size, same second, time set back."""

from __future__ import annotations

import os

import pytest

from vally_backend_local import stat_index
from vally_backend_local.baseline_cache import BaselineCache
from vally_backend_local.stat_index import TreeState, Workspace, compare_known

ROUNDS = 25


@pytest.fixture(params=["own baseline", "cached baseline"])
def prepared(request, make_trial, tmp_path):
    """Make a trial whose `a.txt` has just been staged, with the baseline taken in either way."""

    def prepare():
        cached = request.param == "cached baseline"
        cache = BaselineCache(tmp_path / "cache") if cached else None
        if cached and not (tmp_path / "cache").exists():
            filler = make_trial(cache)
            filler.write("a.txt", "one\n")
            filler.baseline("key")
        trial = make_trial(cache)
        trial.write("a.txt", "one\n")
        trial.baseline("key")
        return trial

    return prepare


def test_a_same_size_edit_at_once(prepared):
    for _ in range(ROUNDS):
        trial = prepared()
        trial.write("a.txt", "two\n")
        assert "-one\n+two\n" in trial.diff()


def test_a_same_size_edit_with_the_time_set_back(prepared):
    for _ in range(ROUNDS):
        trial = prepared()
        path = trial.workspace / "a.txt"
        facts = path.stat()
        trial.write("a.txt", "two\n")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert path.stat().st_mtime_ns == facts.st_mtime_ns
        assert "-one\n+two\n" in trial.diff()


def test_old_times_set_back_to_what_they_were(prepared):
    trial = prepared()
    path = trial.workspace / "a.txt"
    os.utime(path, (1_000_000_000, 1_000_000_000))
    trial.snapshots.turn(0)
    trial.write("a.txt", "two\n")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    trial.snapshots.turn(1)
    first, second = (result.diff.text for result in trial.snapshots.turn_diffs())
    assert first == ""
    assert "-one\n+two\n" in second


@pytest.mark.parametrize("seconds", [0, 1, -1])
def test_times_at_the_beginning_of_the_epoch(prepared, seconds):
    trial = prepared()
    path = trial.workspace / "a.txt"
    os.utime(path, (seconds, seconds))
    trial.snapshots.turn(0)
    trial.write("a.txt", "two\n")
    os.utime(path, (seconds, seconds))
    assert "-one\n+two\n" in trial.diff()


def test_quick_edits_in_quick_turns(prepared):
    trial = prepared()
    contents = ["one\n", *(f"{n:03d}\n" for n in range(ROUNDS))]
    for number, content in enumerate(contents[1:]):
        trial.write("a.txt", content)
        trial.snapshots.turn(number)
    results = list(trial.snapshots.turn_diffs())
    assert len(results) == ROUNDS
    for result, old, new in zip(results, contents, contents[1:], strict=False):
        assert f"-{old}+{new}" in result.diff.text


def test_a_file_replaced_by_another_with_the_same_size_and_time(prepared, tmp_path):
    trial = prepared()
    facts = (trial.workspace / "a.txt").stat()
    (tmp_path / "other").write_text("two\n")
    os.utime(tmp_path / "other", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    (tmp_path / "other").rename(trial.workspace / "a.txt")
    assert "-one\n+two\n" in trial.diff()


def test_touching_a_file_is_no_change(prepared):
    trial = prepared()
    (trial.workspace / "a.txt").touch()
    trial.write("a.txt", "one\n")
    assert trial.diff() == ""


@pytest.mark.parametrize(
    ("granularity_ns", "age_ns", "again"),
    [
        (1, 10_000_000, True),
        (1, 200_000_000, False),
        (1_000_000_000, 200_000_000, True),
        (1_000_000_000, 2_000_000_000, True),
        (1_000_000_000, 3_000_000_000, False),
    ],
)
def test_a_file_changed_shortly_before_it_was_looked_at_is_hashed_again(
    trial, monkeypatch, granularity_ns, age_ns, again
):
    """The clocks of file systems tick: an edit within one tick leaves all times as they were."""
    path = trial.write("a.txt", "one\n")
    while granularity_ns == 1 and path.stat().st_ctime_ns % 1_000_000_000 == 0:
        path.touch()
    true_status = stat_index.status_of

    def coarse_status(found):
        status = true_status(found)
        return (*status[:3], status[3] // granularity_ns * granularity_ns, *status[4:])

    monkeypatch.setattr(stat_index, "status_of", coarse_status)
    status = coarse_status(path.lstat())
    changes = compare_known(
        Workspace(trial.workspace), TreeState("", {b"a.txt": status}, {}, looked_at=status[3] + age_ns)
    )
    assert changes.stage == ([b"a.txt"] if again else [])
    assert changes.files == {b"a.txt": status}
