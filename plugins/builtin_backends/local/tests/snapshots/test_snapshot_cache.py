"""Baselines from the cache are as right as those made anew, and damage to the cache is repaired."""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from vally_backend_local.baseline_cache import BaselineCache


def fill(trial):
    trial.write("a.txt", "one\n")
    trial.write("dir/b.txt", "one\n")
    trial.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    trial.write(".gitignore", "*.log\n")
    trial.write("x.log", "ignored\n")
    (trial.workspace / "link").symlink_to("a.txt")
    nested = trial.workspace / "nested"
    (nested / ".git" / "objects").mkdir(parents=True)
    (nested / ".git" / "refs").mkdir()
    (nested / ".git" / "HEAD").write_text("1" * 40)
    (nested / "inside.txt").write_text("x\n")


def edit(trial):
    trial.write("a.txt", "two\n")
    trial.write("dir/c.txt", "new\n")
    (trial.workspace / "dir" / "b.txt").unlink()
    (trial.workspace / "run.sh").chmod(0o644)
    (trial.workspace / "link").unlink()
    (trial.workspace / "link").symlink_to("dir")
    (trial.workspace / "nested" / ".git" / "HEAD").write_text("2" * 40)


@pytest.fixture
def cache(tmp_path):
    return BaselineCache(tmp_path / "cache")


@pytest.fixture
def filled(make_trial):
    """Make a trial with the standard files."""

    def make(cache=None):
        trial = make_trial(cache)
        fill(trial)
        return trial

    return make


def entries(cache):
    return sorted(path.name for path in cache.directory.iterdir())


def outcome(trial, tmp_path):
    edit(trial)
    trial.snapshots.patch(trial.before, trial.snapshots.final(), tmp_path / "patch")
    return trial.diff(), (tmp_path / "patch").read_bytes()


def test_a_cached_baseline_gives_the_same_trees_and_texts(filled, cache, tmp_path):
    plain, first, second = filled(), filled(cache), filled(cache)
    assert plain.baseline() == first.baseline("key") == second.baseline("key")
    expected = outcome(plain, tmp_path)
    assert expected[0].count("diff --git") == 6
    assert outcome(first, tmp_path) == expected
    assert outcome(second, tmp_path) == expected
    assert entries(cache) == ["key"]


def test_the_second_trial_stores_no_content(filled, cache):
    first, second = filled(cache), filled(cache)
    first.baseline("key")
    second.baseline("key")
    stored = [path.name for path in (second.private / "objects").rglob("*") if path.is_file()]
    assert stored == ["alternates"]


def test_trials_change_no_content_of_the_cache(filled, cache, contents_of):
    filled(cache).baseline("key")
    seen = contents_of(cache.directory)
    trial = filled(cache)
    trial.baseline("key")
    edit(trial)
    trial.snapshots.turn(0)
    trial.diff()
    assert contents_of(cache.directory) == seen


def test_many_trials_at_once(filled, cache, tmp_path):
    trials = [filled(cache) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        trees = set(pool.map(lambda trial: trial.baseline("key"), trials))
    assert len(trees) == 1
    assert entries(cache) == ["key"]
    expected = outcome(trials[0], tmp_path)
    assert all(outcome(trial, tmp_path) == expected for trial in trials[1:])


def test_many_processes_at_once(filled, tmp_path):
    trials = [filled(BaselineCache(tmp_path / "cache")) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        trees = set(pool.map(lambda trial: trial.baseline("key"), trials))
    assert len(trees) == 1
    assert entries(trials[0].cache) == ["key"]
    assert outcome(trials[0], tmp_path) == outcome(trials[7], tmp_path)


def an_object(entry):
    """The file of an object, whichever way they are stored."""
    files = [path for path in (entry / "objects").rglob("*") if path.is_file()]
    path = max(files, key=lambda path: path.stat().st_size)
    path.chmod(0o644)
    return path


def flip_a_byte(entry):
    path = an_object(entry)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut_an_object(entry):
    os.truncate(an_object(entry), 10)


def remove_the_objects(entry):
    shutil.rmtree(entry / "objects")


def remove_the_index(entry):
    (entry / "index").unlink()


def garbage_paths(entry):
    (entry / "paths").write_bytes(b"garbage")


def garbage_record(entry):
    (entry / "entry.json").write_text("{")


def record_of_another_shape(entry):
    (entry / "entry.json").write_text("[1]")


def record_of_another_format(entry):
    record = json.loads((entry / "entry.json").read_text())
    (entry / "entry.json").write_text(json.dumps({**record, "format": 0}))


def no_record(entry):
    (entry / "entry.json").unlink()


DAMAGES = [
    flip_a_byte,
    cut_an_object,
    remove_the_objects,
    remove_the_index,
    garbage_paths,
    garbage_record,
    record_of_another_shape,
    record_of_another_format,
    no_record,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_again(filled, cache, tmp_path, damage):
    filled(cache).baseline("key")
    damage(cache.directory / "key")
    later = BaselineCache(tmp_path / "cache")
    trial, plain = filled(later), filled()
    assert trial.baseline("key") == plain.baseline()
    assert outcome(trial, tmp_path) == outcome(plain, tmp_path)
    assert entries(cache) == ["key"]
    assert later.find("key").tree == trial.before


def test_damage_that_shows_in_sizes_is_noticed_by_a_running_process(filled, cache, tmp_path):
    filled(cache).baseline("key")
    cut_an_object(cache.directory / "key")
    trial, plain = filled(cache), filled()
    assert trial.baseline("key") == plain.baseline()
    assert outcome(trial, tmp_path) == outcome(plain, tmp_path)


def another_size(trial):
    trial.write("a.txt", "different\n")


def another_mode(trial):
    (trial.workspace / "a.txt").chmod(0o755)


def another_kind(trial):
    (trial.workspace / "a.txt").unlink()
    (trial.workspace / "a.txt").symlink_to("b")


def a_missing_file(trial):
    (trial.workspace / "a.txt").unlink()


def another_commit(trial):
    (trial.workspace / "nested" / ".git" / "HEAD").write_text("3" * 40)


@pytest.mark.parametrize("change", [another_size, another_mode, another_kind, a_missing_file, another_commit])
def test_a_workspace_that_does_not_fit_its_key_gets_its_own_baseline(filled, cache, change):
    filled(cache).baseline("key")
    trial = filled(cache)
    change(trial)
    trial.baseline("key")
    assert trial.diff() == ""


@pytest.mark.parametrize("key", ["../escape", "a/b", ".hidden", "", "x" * 500, "ü", "k\udc80"])
def test_keys_are_names_of_directories_below_the_cache(filled, cache, tmp_path, key):
    first, second = filled(cache), filled(cache)
    assert first.baseline(key) == second.baseline(key)
    (name,) = entries(cache)
    assert len(name) == 64
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache")[0].startswith("private")


def test_a_cache_that_cannot_be_written_is_no_failure(filled, tmp_path):
    (tmp_path / "cache").write_text("a file")
    trial = filled(BaselineCache(tmp_path / "cache"))
    trial.baseline("key")
    edit(trial)
    assert trial.diff().count("diff --git") == 6


def test_pruning_removes_the_least_recently_used(filled, cache):
    for number, key in enumerate(["old", "middle", "new"]):
        filled(cache).baseline(key)
        long_ago = time.time() - 3 * 86_400 + number
        os.utime(cache.directory / key, (long_ago, long_ago))
    left_over = cache.directory / ".new-0123"
    left_over.mkdir()
    os.utime(left_over, (0, 0))
    size = sum(path.stat().st_size for path in (cache.directory / "new").rglob("*") if path.is_file())
    cache.prune(10 * size)
    assert entries(cache) == ["middle", "new", "old"]
    filled(cache).baseline("old")
    cache.prune(2 * size)
    assert entries(cache) == ["new", "old"]
    cache.prune(0)
    assert entries(cache) == ["old"]
    assert filled(cache).baseline("new")
