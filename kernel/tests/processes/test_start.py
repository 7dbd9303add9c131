"""Processes that are talked to, and those that a library starts itself."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from vally.processes import LocalProcessRunner, ProcessStartError

pytestmark = pytest.mark.anyio

REPORT = ["sh", "-c", "echo $$ $(ps -o pgid= -o sid= -p $$); env"]


async def test_a_conversation(runner: LocalProcessRunner) -> None:
    process = await runner.start(["sh", "-c", "read word; echo got $word; read word; exit 4"])
    await process.stdin.send(b"first\n")
    assert await process.stdout.receive() == b"got first\n"
    await process.stdin.aclose()
    done = await process.wait()
    assert (done.returncode, done.signal) == (4, None)
    await runner.kill_all()


async def test_a_process_has_a_session_of_its_own(runner: LocalProcessRunner) -> None:
    process = await runner.start(["sleep", "600"])
    assert (os.getpgid(process.pid), os.getsid(process.pid)) == (process.pid, process.pid)
    await process.terminate()
    assert (await process.wait()).signal == "SIGTERM"
    await runner.kill_all()


async def test_what_is_ended_is_known_to_have_ended(
    runner: LocalProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = os.waitpid

    def late(pid: int, flags: int) -> tuple[int, int]:
        found = collected(pid, flags)
        time.sleep(0.3)
        return found

    monkeypatch.setattr(os, "waitpid", late)
    process = await runner.start(["sleep", "600"])
    await process.terminate()
    assert process.returncode == -15  # Else the loop may be closed before it hears of the end.
    await runner.kill_all()


async def test_terminate_uses_force_in_the_end(runner: LocalProcessRunner) -> None:
    process = await runner.start(["sh", "-c", "trap '' TERM; echo ready; sleep 600 & while :; do sleep 0.05; done"])
    await process.stdout.receive()
    await process.terminate(grace=0.2)
    assert (await process.wait()).signal == "SIGKILL"
    assert await runner.kill_all() == 0


async def test_kill_ends_the_group(runner: LocalProcessRunner) -> None:
    process = await runner.start(["sh", "-c", "trap '' TERM; sleep 600 & echo ready; wait"])
    await process.stdout.receive()
    await process.kill()
    assert (await process.wait()).signal == "SIGKILL"
    assert await runner.kill_all() == 0


async def test_a_missing_program(runner: LocalProcessRunner) -> None:
    with pytest.raises(ProcessStartError) as caught:
        await runner.start(["no-such-program"])
    assert caught.value.errno_name == "ENOENT"


@pytest.mark.parametrize("as_leader", [False, True], ids=["plain", "leader"])
async def test_a_wrapped_command_keeps_id_environment_and_arguments(
    runner: LocalProcessRunner, trial_id: str, tmp_path: Path, as_leader: bool
) -> None:
    argv, env = runner.wrap(
        ["sh", "-c", 'echo "$0|$1"; exec sh -c "$2"', "a b", "", REPORT[2]],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    )
    child = subprocess.Popen(
        argv, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=as_leader
    )
    out, _ = await anyio.to_thread.run_sync(child.communicate)
    words, ids, *variables = out.splitlines()
    assert words == "a b|"
    assert ids.split() == [str(child.pid)] * 3
    names = {line.partition("=")[0] for line in variables}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "VALLY_TRIAL"}
    assert f"VALLY_TRIAL={trial_id}" in variables


async def test_a_wrapped_command_gets_the_usual_signal_handling(runner: LocalProcessRunner, tmp_path: Path) -> None:
    argv, env = runner.wrap(["sh", "-c", "kill -PIPE $$; echo alive"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-13, b"")


async def test_a_wrapped_command_that_does_not_exist_is_an_error_at_once(
    runner: LocalProcessRunner, tmp_path: Path
) -> None:
    with pytest.raises(ProcessStartError) as caught:
        runner.wrap(["no-such-program"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert caught.value.errno_name == "ENOENT"


async def test_a_wrapped_command_may_be_relative_to_its_directory(runner: LocalProcessRunner, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho relative\n")
    (tmp_path / "tool").chmod(0o755)
    argv, env = runner.wrap(["./tool"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, check=True).stdout == b"relative\n"


async def test_what_a_library_started_is_found(runner: LocalProcessRunner, tmp_path: Path) -> None:
    argv, env = runner.wrap(["sleep", "600"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    child = subprocess.Popen(argv, env=env, cwd="/")
    assert await runner.kill_all() == 1
    assert child.wait(timeout=10) in (-15, -9)
