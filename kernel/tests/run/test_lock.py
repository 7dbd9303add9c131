"""One writer per run directory."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vally.run.lock import LockError, RunLock, is_being_written


def _write(path: Path, **fields: Any) -> None:
    holder = {"host": platform.node(), "pid": os.getpid(), "startedAt": "2026-01-01T00:00:00.000Z", **fields}
    (path / ".lock").write_text(json.dumps(holder))


def _dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_lock_names_its_holder_and_goes_at_the_end(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        holder = json.loads((tmp_path / ".lock").read_text())
        assert list(holder) == ["host", "pid", "startedAt"]
        assert (holder["host"], holder["pid"]) == (platform.node(), os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(LockError) as caught:
        RunLock(tmp_path).acquire()
    assert caught.value.code == "run-locked"
    assert f"process {os.getpid()} on {platform.node()}" in caught.value.message
    assert caught.value.where == str(tmp_path / ".lock")


def test_another_process_is_refused(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vally.run.lock import LockError, RunLock, is_being_written\n"
        "try:\n"
        "    RunLock(Path(sys.argv[1])).acquire()\n"
        "except LockError:\n"
        "    sys.exit(7)\n"
    )
    with RunLock(tmp_path):
        assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 7
        assert (tmp_path / ".lock").exists()


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    pid = _dead_pid()
    _write(tmp_path, pid=pid)
    lock = RunLock(tmp_path)
    assert lock.acquire() == f"took over the lock of process {pid}, which has ended without removing it"
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_pid_that_was_given_to_another_process_is_dead(tmp_path: Path) -> None:
    _write(tmp_path, startedAt="2001-01-01T00:00:00.000Z")
    lock = RunLock(tmp_path)
    assert lock.acquire() is not None
    lock.release()


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "another-host", "pid": 1},
        {"pid": "x"},
        {"pid": 0},
        {"startedAt": None},
    ],
)
def test_locks_that_may_be_held_are_respected(tmp_path: Path, fields: dict[str, Any]) -> None:
    _write(tmp_path, **fields)
    before = (tmp_path / ".lock").read_bytes()
    with pytest.raises(LockError):
        RunLock(tmp_path).acquire()
    assert (tmp_path / ".lock").read_bytes() == before


@pytest.mark.parametrize("content", ["", "nonsense", "[]"])
def test_an_unreadable_lock_is_respected(tmp_path: Path, content: str) -> None:
    (tmp_path / ".lock").write_text(content)
    with pytest.raises(LockError, match="cannot be read"):
        RunLock(tmp_path).acquire()


def test_a_lock_that_was_taken_away_is_not_removed(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    lock.acquire()
    _write(tmp_path, pid=1)
    lock.release()
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == 1
    lock.release()


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="cannot create the lock"):
        RunLock(tmp_path / "missing").acquire()


def test_a_directory_is_being_written_while_a_living_process_holds_its_lock(tmp_path: Path) -> None:
    assert not is_being_written(tmp_path)
    with RunLock(tmp_path):
        assert is_being_written(tmp_path)
    assert not is_being_written(tmp_path)


def test_the_lock_of_a_dead_process_means_nothing_that_of_another_host_may(tmp_path: Path) -> None:
    _write(tmp_path, pid=_dead_pid())
    assert not is_being_written(tmp_path)
    _write(tmp_path, host="elsewhere")
    assert is_being_written(tmp_path)
