"""The guardian, seen from outside: vally dies, and nothing of its trials is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from vally.processes import Guardian, LocalProcessRunner, find_marked, watch

PATH = os.environ["PATH"]

# Starts three trials with strays of every kind, says so, and waits for its death.
VALLY = """
import sys
from pathlib import Path
import anyio
from vally.processes import Guardian, LocalProcessRunner

async def main():
    guardian = Guardian()
    for name in sys.argv[3:]:
        home = Path(sys.argv[1], name)
        home.mkdir()
        runner = LocalProcessRunner(name, {"PATH": sys.argv[2]}, cwd=home, owned_dirs=[home], removable_dirs=[home],
                                    guardian=guardian)
        runner.mark("SESSION_OF", name + "-mark")
        await runner.start(["sh", "-c", "trap '' TERM; sleep 600 & wait"])
        await runner.start(["env", "-i", "sh", "-c", "cd /; sleep 600 & wait"], env={"PATH": sys.argv[2]})
        for stray in ("setsid nohup sleep 600", "cd /; setsid sleep 600",
                      "cd /; env -i SESSION_OF=$VALLY_TRIAL-mark setsid sleep 600"):
            shell = await runner.start(["sh", "-c", f"( {stray} ) >/dev/null 2>&1 & exit"])
            await shell.wait()
        if name == sys.argv[-1]:
            await runner.kill_all()
            runner.close()
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


def until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def guardians(parent: int | None = None) -> list[psutil.Process]:
    children = psutil.Process(parent).children()
    return [child for child in children if not gone(child.pid) and _last_word(child).endswith("watch.py")]


def _last_word(process: psutil.Process) -> str:
    # Nothing for a moment, while the system puts the program in the place of the one that started it.
    return (process.cmdline() or [""])[-1]


def left_of(names: list[str], base: Path) -> list[object]:
    found: list[object] = [entry for name in names for entry in find_marked(name, [("SESSION_OF", f"{name}-mark")])]
    return [*found, *find_marked(None, dirs=[base])]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill-9", "terminate"])
def test_the_death_of_vally_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    names = [str(uuid.uuid4()) for _ in range(3)]
    vally = subprocess.Popen(
        [sys.executable, "-c", VALLY, str(tmp_path), PATH, *names],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert vally.stdout is not None
    assert vally.stdout.readline() == "ready\n"
    (guardian,) = (child.pid for child in guardians(vally.pid))
    strays = {entry.pid for name in names for entry in find_marked(name)}
    sessions = [child.pid for child in psutil.Process(vally.pid).children(recursive=True) if child.pid != guardian]
    assert len(strays) >= 6
    vally.send_signal(how)
    vally.wait()
    vally.stdout.close()
    until(lambda: not left_of(names, tmp_path) and all(gone(pid) for pid in [*strays, *sessions]), 5)
    until(lambda: gone(guardian), 5)
    # The third trial was closed, so its directory is no longer the guardian's business.
    assert [path.name for path in tmp_path.iterdir()] == [names[2]]


def test_ctrl_c_in_a_terminal_does_not_reach_the_guardian() -> None:
    guardian = Guardian()
    runner = LocalProcessRunner(str(uuid.uuid4()), {"PATH": PATH}, guardian=guardian)
    runner.mark("A", "b")
    until(guardians, 10)
    (child,) = guardians()
    assert os.getsid(child.pid) == child.pid
    until(lambda: child.status() == psutil.STATUS_SLEEPING and _handles_signals(child.pid), 10)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child.send_signal(number)
    time.sleep(0.2)
    assert child.is_running()
    runner.close()
    guardian.shutdown()
    assert not child.is_running()


def _handles_signals(pid: int) -> bool:
    if sys.platform != "linux":
        time.sleep(0.5)
        return True
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
    return bool(int(line.split()[1], 16) & (1 << (signal.SIGHUP - 1)))


def test_nothing_is_started_for_trials_without_processes() -> None:
    guardian = Guardian()
    runner = LocalProcessRunner(str(uuid.uuid4()), {"PATH": PATH}, guardian=guardian)
    runner.close()
    assert guardians() == []
    guardian.shutdown()


@pytest.mark.anyio
async def test_a_normal_end_is_immediate_and_harms_nobody(tmp_path: Path, trial_id: str) -> None:
    guardian = Guardian()
    runner = LocalProcessRunner(trial_id, {"PATH": PATH}, cwd=tmp_path, removable_dirs=[tmp_path], guardian=guardian)
    await runner.run(["true"])
    await runner.kill_all()
    runner.close()
    began = time.monotonic()
    guardian.shutdown()
    guardian.shutdown()
    assert time.monotonic() - began < 5
    assert tmp_path.is_dir()


@pytest.mark.anyio
async def test_a_shutdown_with_open_trials_ends_them(tmp_path: Path, trial_id: str, daemon: Callable[..., str]) -> None:
    guardian = Guardian()
    scratch = tmp_path / "a name with spaces\nand a line"
    scratch.mkdir()
    runner = LocalProcessRunner(
        trial_id, {"PATH": PATH}, cwd=scratch, owned_dirs=[scratch], removable_dirs=[scratch], guardian=guardian
    )
    await runner.run(["sh", "-c", daemon(before=f"env -i PATH={PATH}")])
    assert find_marked(trial_id, dirs=[scratch])
    guardian.shutdown()
    assert find_marked(trial_id, dirs=[scratch]) == []
    assert not scratch.exists()


@pytest.mark.anyio
async def test_a_guardian_that_was_killed_is_replaced(
    tmp_path: Path, trial_id: str, daemon: Callable[..., str]
) -> None:
    guardian = Guardian()
    runner = LocalProcessRunner(trial_id, {"PATH": PATH}, cwd=tmp_path, owned_dirs=[tmp_path], guardian=guardian)
    await runner.run(["sh", "-c", daemon()])
    assert find_marked(trial_id)
    until(guardians, 10)
    (child,) = guardians()
    child.kill()
    until(lambda: gone(child.pid), 10)
    runner.mark("A", "b")
    until(guardians, 10)
    (second,) = guardians()
    assert second.is_running()
    guardian.shutdown()
    assert find_marked(trial_id, dirs=[tmp_path]) == []


if sys.platform == "linux" and os.geteuid() == 0:  # only root may mount

    def test_a_mount_inside_a_removed_directory_keeps_its_content(tmp_path: Path) -> None:
        from vally.processes.watch import mounts_in, remove_directories

        source, scratch = tmp_path / "source", tmp_path / "scratch"
        (scratch / "mounted here").mkdir(parents=True)
        source.mkdir()
        (source / "precious").write_text("x")
        subprocess.run(["mount", "--bind", str(source), str(scratch / "mounted here")], check=True)
        try:
            assert mounts_in(str(scratch)) == [str(scratch / "mounted here")]
            remove_directories([str(scratch)])
            assert not scratch.exists()
            assert (source / "precious").read_text() == "x"
        finally:
            if scratch.exists():
                subprocess.run(["umount", "-l", str(scratch / "mounted here")], check=False)
                shutil.rmtree(scratch)


@pytest.mark.anyio
async def test_commands_of_open_trials_are_run_before_their_directories_go(tmp_path: Path, trial_id: str) -> None:
    guardian = Guardian()
    told = tmp_path / "told"
    for name in ("open", "closed"):
        place = tmp_path / name
        place.mkdir()
        runner = LocalProcessRunner(f"{trial_id}-{name}", {}, removable_dirs=[place], guardian=guardian)
        runner.at_death([str(tmp_path / "no-such-program")], {})
        script = 'test -d "$PLACE" && echo "$PLACE $(env | grep -c SECRET)" >> "$TOLD"'
        runner.at_death(["/bin/sh", "-c", script], {"PATH": PATH, "PLACE": str(place), "TOLD": str(told)})
    runner.close()
    guardian.shutdown()
    assert told.read_text() == f"{tmp_path / 'open'} 0\n"
    assert not (tmp_path / "open").exists()


@pytest.mark.anyio
async def test_a_command_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "COMMAND_SECONDS", 0.2)
    watch.run_commands([(["sleep", "600"], {"PATH": PATH, "MARK": str(tmp_path)})])
    assert find_marked(None, [("MARK", str(tmp_path))]) == []
