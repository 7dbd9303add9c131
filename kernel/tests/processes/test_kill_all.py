"""Ending what an agent left behind, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from vally.processes import LocalProcessRunner, find_marked
from vally.processes import scan as scanning

pytestmark = pytest.mark.anyio
Script = Callable[[str, str], list[str]]
PATH = os.environ["PATH"]

STRAYS = {
    "setsid": "setsid sleep 600 >/dev/null 2>&1 &",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 &",
    "double-fork": "( ( setsid sleep 600 >/dev/null 2>&1 & ) & )",
    "elsewhere": "( cd / && setsid sleep 600 >/dev/null 2>&1 & )",
    "directory-only": "env -i setsid sleep 600 >/dev/null 2>&1 &",
    "stubborn": "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.05; done' >/dev/null 2>&1 &",
    "stopped": "setsid sh -c 'kill -STOP $$' >/dev/null 2>&1 &",
}


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS.keys())
async def test_strays_are_found_and_ended(
    runner: LocalProcessRunner, trial_id: str, tmp_path: Path, stray: str
) -> None:
    process = await runner.start(["sh", "-c", f"{stray}\nsleep 0.3"])
    await process.wait()
    left = find_marked(trial_id, dirs=[tmp_path])
    assert left
    assert await runner.kill_all(grace=0.5) >= len(left)
    assert find_marked(trial_id, dirs=[tmp_path]) == []


async def test_a_session_is_ended_without_mark_and_directory(runner: LocalProcessRunner) -> None:
    # A group of its own, as a shell with job control makes it; the cleared environment hides the mark.
    program = "import os, time; print(os.getpid(), flush=True); os.setpgid(0, 0); time.sleep(600)"
    command = f"cd /; {sys.executable} -I -S -c '{program}' 2>/dev/null & sleep 0.3"
    shell = await runner.start(["env", "-i", "/bin/sh", "-c", command])
    background = int(await shell.stdout.receive())
    await shell.wait()
    assert os.getpgid(background) != shell.pid
    assert await runner.kill_all() == 1
    assert not psutil.pid_exists(background) or psutil.Process(background).status() == psutil.STATUS_ZOMBIE


async def test_a_shared_process_is_known_by_a_further_pair(runner: LocalProcessRunner, tmp_path: Path) -> None:
    mark = str(uuid.uuid4())
    child = subprocess.Popen(["sleep", "600"], env={"SESSION": mark, "PATH": PATH}, cwd="/")
    other = subprocess.Popen(["sleep", "600"], env={"SESSION": mark + "x", "PATH": PATH}, cwd="/")
    try:
        assert await runner.kill_all() == 0
        runner.mark("SESSION", mark)
        until(lambda: find_marked(None, [("SESSION", mark)]))
        assert await runner.kill_all() == 1
        assert child.wait(timeout=10) == -15
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_a_shell_that_was_in_the_directory_before_the_trial_lives_on(tmp_path: Path, trial_id: str) -> None:
    shell = subprocess.Popen(["sleep", "600"], cwd=tmp_path)
    try:
        time.sleep(0.05)
        runner = LocalProcessRunner(trial_id, {"PATH": PATH}, cwd=tmp_path, owned_dirs=[tmp_path])
        await runner.run(["true"])
        assert await runner.kill_all() == 0
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.wait()


def test_neither_this_process_nor_its_ancestors_are_found() -> None:
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    sibling = subprocess.Popen(["sleep", "600"], cwd="/")
    try:
        everywhere = {entry.pid for entry in find_marked("none", dirs=[Path("/")])}
        assert sibling.pid in everywhere
        assert own.isdisjoint(everywhere)
    finally:
        sibling.kill()
        sibling.wait()


async def test_neighbours_of_the_directory_are_left_alone(runner: LocalProcessRunner, tmp_path: Path) -> None:
    inside, beside = tmp_path / "work", tmp_path / "work-2"
    inside.mkdir()
    beside.mkdir()
    own = LocalProcessRunner(str(uuid.uuid4()), {"PATH": PATH}, cwd=inside, owned_dirs=[inside])
    neighbour = subprocess.Popen(["sleep", "600"], cwd=beside, env={"PATH": PATH})
    try:
        await own.run(["true"])
        assert await own.kill_all() == 0
        assert neighbour.poll() is None
    finally:
        neighbour.kill()
        neighbour.wait()


async def test_another_trial_is_left_alone(runner: LocalProcessRunner, tmp_path: Path) -> None:
    other = LocalProcessRunner(str(uuid.uuid4()), {"PATH": PATH}, cwd=Path("/"))
    process = await other.start(["sleep", "600"])
    await runner.run(["true"])
    assert await runner.kill_all() == 0
    assert process.returncode is None
    assert await other.kill_all() == 1


async def test_fifty_forks(runner: LocalProcessRunner, script: Script) -> None:
    loop = "i=0; while [ $i -lt 50 ]; do setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & i=$((i+1)); done"
    await (await runner.start(script("forks", loop))).wait()
    assert await runner.kill_all() >= 50


async def test_processes_that_keep_forking(runner: LocalProcessRunner, script: Script) -> None:
    again = script("again", 'sleep 0.05; setsid "$0" >/dev/null 2>&1 &')
    await (await runner.start(again)).wait()
    assert await runner.kill_all(grace=0.2) >= 1


async def test_a_removed_directory_still_marks(runner: LocalProcessRunner, daemon: Callable[..., str]) -> None:
    stray = daemon("../daemon", before=f"env -i PATH={PATH}")
    done = await runner.run(["sh", "-c", f"mkdir gone; cd gone; {stray} cd ..; rmdir gone"])
    assert done.returncode == 0
    assert await runner.kill_all() == 1


async def test_a_runner_that_started_nothing_looks_for_nothing(
    runner: LocalProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the process table was read")

    monkeypatch.setattr(scanning.ProcTable, "entries", refuse)
    monkeypatch.setattr(scanning.PsutilTable, "entries", refuse)
    assert await runner.kill_all() == 0


async def test_kill_all_can_be_called_again(runner: LocalProcessRunner, daemon: Callable[..., str]) -> None:
    for name in ("first", "second"):
        await runner.run(["sh", "-c", daemon(name)])
        assert await runner.kill_all() == 1
        assert await runner.kill_all() == 0


def test_a_session_id_given_out_again_is_not_ours(tmp_path: Path) -> None:
    table = scanning.process_table()
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        started = next(entry.started for entry in table.entries() if entry.pid == stranger.pid)
        earlier = scanning.Marks(sessions={stranger.pid: started - 1})
        ours = scanning.Marks(sessions={stranger.pid: started})
        assert scanning.find_processes(earlier, table) == []
        assert [entry.pid for entry in scanning.find_processes(ours, table)] == [stranger.pid]
    finally:
        stranger.kill()
        stranger.wait()


def test_zombies_are_not_living() -> None:
    table = scanning.process_table()
    child = subprocess.Popen(["true"], start_new_session=True)
    try:
        until(lambda: all(entry.pid != child.pid for entry in table.entries()))
    finally:
        child.wait()


def test_both_tables_see_the_same(tmp_path: Path, trial_id: str) -> None:
    child = subprocess.Popen(["sleep", "600"], cwd=tmp_path, env={"VALLY_TRIAL": trial_id, "PATH": PATH})
    try:
        until(lambda: find_marked(trial_id))
        psutil_table = scanning.PsutilTable()
        pairs = frozenset({f"VALLY_TRIAL={trial_id}".encode()})
        for marks in (scanning.Marks(pairs=pairs), scanning.Marks(dirs=(os.fsencode(tmp_path.resolve()),))):
            found = scanning.find_processes(marks, psutil_table)
            assert [entry[:4] for entry in found] == [
                entry[:4] for entry in scanning.find_processes(marks, scanning.process_table())
            ]
            assert [entry.pid for entry in found] == [child.pid]
        since = psutil_table.clock() + 1
        assert scanning.find_processes(scanning.Marks(pairs=pairs, since=since), psutil_table) == []
        assert scanning.end_processes(scanning.Marks(pairs=pairs), psutil_table, grace=1) == 1
        assert child.wait(timeout=10) == -15
    finally:
        child.kill()
        child.wait()
