"""How git is started: how often, how it is ended, and what is said when it cannot run."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from vally_backend_local.baseline_cache import BaselineCache
from vally_backend_local.git_process import Limits, SnapshotError


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("_", [pytest.param(None, id="SD-4")])
def test_git_missing(make_trial, tmp_path, _):
    trial = make_trial(git=str(tmp_path / "no" / "git"))
    with pytest.raises(SnapshotError) as caught:
        trial.snapshots.baseline()
    assert str(caught.value) == "git not found"
    trial.snapshots.turn(0)
    assert [result.diff.error for result in trial.snapshots.turn_diffs()] == ["git not found"]
    capture = trial.snapshots.capture(tmp_path / "workspace.patch")
    assert (capture.diff.text, capture.diff.error, capture.patch_bytes) == (None, "git not found", 0)


def test_git_missing_from_the_path(trial, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SnapshotError, match=r"^git not found$"):
        trial.snapshots.baseline()


def test_a_git_that_cannot_be_started(make_trial, tmp_path):
    broken = tmp_path / "git"
    broken.write_bytes(b"\x7fELF garbage")
    broken.chmod(0o755)
    trial = make_trial(git=str(broken))
    with pytest.raises(SnapshotError, match=r"^git cannot be started: "):
        trial.snapshots.baseline()


def test_the_reason_is_the_first_line_that_names_an_error(make_trial, tmp_path):
    git = script(tmp_path / "git", "echo hint >&2; echo 'fatal: disk full' >&2; echo 'error: more' >&2; exit 3")
    with pytest.raises(SnapshotError, match=r"^git ls-files failed: disk full$"):
        make_trial(git=git).snapshots.baseline()


def test_a_failure_without_a_word(make_trial, tmp_path):
    git = script(tmp_path / "git", "exit 3")
    with pytest.raises(SnapshotError, match=r"^git ls-files failed: exit code 3$"):
        make_trial(git=git).snapshots.baseline()


def test_a_failure_that_passes_is_tried_again(make_trial, tmp_path):
    real = shutil.which("git")
    flag = tmp_path / "failed-once"
    git = script(
        tmp_path / "git",
        f'case "$*" in *update-index*) if [ ! -e {flag} ]; then touch {flag}; exit 128; fi;; esac; exec {real} "$@"',
    )
    trial = make_trial(git=git)
    trial.write("a.txt", "x\n")
    trial.baseline()
    assert flag.exists()
    assert trial.diff() == ""


@pytest.mark.parametrize(("version", "packs"), [("2.34.1", 0), ("2.39.5 (Apple Git-154)", 1), ("unknown", 0)])
def test_contents_go_into_one_pack_where_git_can_do_it(make_trial, tmp_path, version, packs):
    real = shutil.which("git")
    git = script(tmp_path / "git", f'[ "$1" = version ] && echo "git version {version}" || exec {real} "$@"')
    trial = make_trial(git=git)
    for number in range(100):
        trial.write(f"f{number}", f"{number} and more\n")
    trial.baseline()
    objects = trial.private / "objects"
    assert len(list(objects.glob("pack/*.pack"))) == packs
    assert len(list(objects.glob("??/*"))) == (1 if packs else 101)
    trial.write("f1", "edited\n")
    assert trial.diff().endswith("-1 and more\n+edited\n")


def is_gone(pid_file: Path) -> bool:
    pid = int(pid_file.read_text())
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_until(condition) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("did not happen in 10 s")


def test_a_git_that_hangs_is_ended_with_its_children(make_trial, tmp_path):
    git = script(tmp_path / "git", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    trial = make_trial(git=git, limits=Limits(timeout=0.5))
    with pytest.raises(SnapshotError, match=r"^git ls-files took more than 0\.5 s$"):
        trial.snapshots.baseline()
    wait_until(lambda: is_gone(tmp_path / "child"))


def test_cancelling_from_another_thread(make_trial, tmp_path):
    git = script(tmp_path / "git", f"sleep 600 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/child; wait")
    trial = make_trial(git=git)
    errors: list[str] = []

    def take() -> None:
        with pytest.raises(SnapshotError) as caught:
            trial.snapshots.baseline()
        errors.append(str(caught.value))

    thread = threading.Thread(target=take)
    thread.start()
    wait_until((tmp_path / "child").exists)
    trial.snapshots.cancel()
    thread.join(10)
    assert errors == ["the snapshot was cancelled"]
    wait_until(lambda: is_gone(tmp_path / "child"))
    with pytest.raises(SnapshotError, match=r"^the snapshot was cancelled$"):
        trial.snapshots.baseline()


@pytest.fixture
def counted(make_trial, tmp_path):
    """A trial of 400 files whose git commands are written to a list."""

    def make(cache=None):
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        git = script(tmp_path / "git", f'echo "$@" >> {log}; exec {shutil.which("git")} "$@"')
        trial = make_trial(cache, git=git)
        for number in range(400):
            trial.write(f"d{number % 7}/f{number}.txt", f"{number}\n")
        # Older than any tick, so that only edits are looked at again.
        time.sleep(0.05)
        return trial, log

    return make


def commands(log: Path) -> list[str]:
    words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    log.unlink(missing_ok=True)
    return [line[2] if line[0] == "-c" else line[0] for line in words]


def test_one_process_per_step(counted):
    trial, log = counted()
    trial.baseline()
    assert commands(log) == ["ls-files", "version", "update-index", "write-tree"]
    trial.snapshots.turn(0)
    assert commands(log) == ["read-tree", "ls-files"]
    for number in range(0, 400, 2):
        trial.write(f"d{number % 7}/f{number}.txt", "edited\n")
    for number in range(1, 400, 4):
        (trial.workspace / f"d{number % 7}" / f"f{number}.txt").unlink()
    for number in range(100):
        trial.write(f"new/f{number}.txt", "new\n")
    assert trial.diff().count("diff --git") == 400
    assert commands(log) == ["ls-files", "update-index", "write-tree", "diff-tree"]


def test_a_cached_baseline_needs_no_process(counted, tmp_path):
    cache = BaselineCache(tmp_path / "cache")
    counted(cache)[0].baseline("key")
    trial, log = counted(cache)
    trial.baseline("key")
    assert commands(log) == []
    assert trial.diff() == ""
    assert commands(log) == ["ls-files"]


def test_nothing_is_left_behind(trial, tmp_path):
    trial.write("a.txt", "x\n")
    trial.baseline()
    trial.write("a.txt", "y\n")
    trial.snapshots.capture(tmp_path / "patch")
    names = sorted(path.name for path in trial.private.iterdir())
    assert names == ["HEAD", "config", "index", "info", "objects", "refs"]
    assert not [child for child in psutil.Process().children() if "git" in child.name()]
    assert not [thread.name for thread in threading.enumerate() if "_watch" in thread.name]


def test_git_sees_only_the_environment_meant_for_it(make_trial, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("GIT_TRACE", "1")
    git = script(tmp_path / "git", f'env > {tmp_path}/env; exec {shutil.which("git")} "$@"')
    trial = make_trial(git=git)
    trial.baseline()
    text = (tmp_path / "env").read_text()
    assert "SOME_TOKEN" not in text
    assert "GIT_TRACE" not in text
    assert f"HOME={trial.private}" in text


def test_the_private_repository_is_one_that_git_accepts(trial):
    trial.write("a.txt", "x\n")
    trial.baseline()
    env = {"GIT_DIR": str(trial.private), "PATH": os.defpath}
    done = subprocess.run(["git", "fsck", "--strict", "--no-dangling"], cwd=trial.private, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
