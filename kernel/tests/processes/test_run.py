"""Running a process to its end."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from vally.processes import LocalProcessRunner, ProcessStartError

pytestmark = pytest.mark.anyio


async def test_output_and_code_are_collected(runner: LocalProcessRunner) -> None:
    done = await runner.run(["sh", "-c", "cat; echo wrong >&2; exit 3"], stdin=b"in\n")
    assert (done.returncode, done.signal, done.stdout, done.stderr) == (3, None, b"in\n", b"wrong\n")
    assert not any((done.timed_out, done.stdout_truncated, done.stderr_truncated))


async def test_the_default_environment_is_complete_and_marked(
    runner: LocalProcessRunner, trial_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "x")
    lines = (await runner.run(["env"])).stdout.decode().split()
    assert f"VALLY_TRIAL={trial_id}" in lines
    assert not any(line.startswith("SECRET_OF_THE_CALLER") for line in lines)


async def test_a_given_environment_replaces_the_default(runner: LocalProcessRunner, trial_id: str) -> None:
    done = await runner.run(["/usr/bin/env"], env={"A": "1"})
    assert set(done.stdout.decode().split()) == {"A=1", f"VALLY_TRIAL={trial_id}"}


async def test_working_directory(runner: LocalProcessRunner, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert (await runner.run(["pwd", "-P"])).stdout.decode().strip() == str(tmp_path.resolve())
    done = await runner.run(["pwd", "-P"], cwd=tmp_path / "sub")
    assert done.stdout.decode().strip() == str((tmp_path / "sub").resolve())


async def test_standard_input_is_empty_unless_given(runner: LocalProcessRunner) -> None:
    assert (await runner.run(["cat"], timeout=20)).stdout == b""


async def test_a_program_may_close_its_input_unread(runner: LocalProcessRunner) -> None:
    done = await runner.run(["sh", "-c", "exec <&-; echo fine"], stdin=b"x" * 2**20)
    assert (done.returncode, done.stdout) == (0, b"fine\n")


async def test_bytes_that_are_not_utf8_are_kept(runner: LocalProcessRunner) -> None:
    done = await runner.run(["printf", r"\377a\0b"])
    assert done.stdout == b"\xffa\0b"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGABRT"])
async def test_death_by_a_signal_has_its_name(runner: LocalProcessRunner, name: str) -> None:
    done = await runner.run(["sh", "-c", f"kill -{name.removeprefix('SIG')} $$"])
    assert (done.returncode, done.signal) == (None, name)


async def test_a_flood_is_read_in_bounded_memory(runner: LocalProcessRunner) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = await runner.run(["head", "-c", "1G", "/dev/zero"], max_bytes=1000)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert done.returncode == 0
    assert (len(done.stdout), done.stdout_truncated, done.stderr_truncated) == (1000, True, False)
    assert grown_kib < 50 * 1024


async def test_output_of_exactly_the_limit_is_whole(runner: LocalProcessRunner) -> None:
    done = await runner.run(["sh", "-c", "printf 12345; printf 123456 >&2"], max_bytes=5)
    assert (done.stdout, done.stdout_truncated) == (b"12345", False)
    assert (done.stderr, done.stderr_truncated) == (b"12345", True)


async def test_a_large_output_arrives_whole_after_the_end(runner: LocalProcessRunner) -> None:
    done = await runner.run([sys.executable, "-c", "print('x' * 5_000_000)"])
    assert len(done.stdout) == 5_000_001


@pytest.mark.parametrize(
    ("argv", "name"),
    [(["no-such-program"], "ENOENT"), (["./no-such-file"], "ENOENT"), (["a\0b"], "EINVAL")],
    ids=["path", "file", "nul"],
)
async def test_a_missing_program(runner: LocalProcessRunner, argv: list[str], name: str) -> None:
    with pytest.raises(ProcessStartError, match="cannot start") as caught:
        await runner.run(argv)
    assert caught.value.errno_name == name


async def test_a_file_that_is_not_executable(runner: LocalProcessRunner, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ProcessStartError, match="Permission denied") as caught:
        await runner.run([str(tmp_path / "plain")])
    assert caught.value.errno_name == "EACCES"


async def test_a_missing_working_directory_is_named(runner: LocalProcessRunner, tmp_path: Path) -> None:
    with pytest.raises(ProcessStartError, match="no-such-dir") as caught:
        await runner.run(["true"], cwd=tmp_path / "no-such-dir")
    assert caught.value.errno_name == "ENOENT"


async def test_a_string_is_no_command(runner: LocalProcessRunner) -> None:
    with pytest.raises(TypeError):
        await runner.run("true")  # type: ignore[arg-type]


async def test_timeout_keeps_what_was_written(runner: LocalProcessRunner) -> None:
    done = await runner.run(["sh", "-c", "echo begun; sleep 600"], timeout=0.5)
    assert (done.timed_out, done.stdout, done.signal) == (True, b"begun\n", "SIGTERM")
    assert done.duration_ms >= 500


async def test_a_process_that_ignores_the_request_is_killed(runner: LocalProcessRunner) -> None:
    done = await runner.run(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], timeout=0.5)
    assert (done.timed_out, done.signal) == (True, "SIGKILL")
    assert done.duration_ms >= 2000


async def test_the_whole_group_ends_with_a_timeout(runner: LocalProcessRunner, tmp_path: Path) -> None:
    done = await runner.run(["sh", "-c", "sleep 600 & sleep 600 | sleep 600"], timeout=0.3)
    assert done.timed_out
    assert await runner.kill_all() == 0


async def test_what_a_process_leaves_in_the_background_runs_until_everything_is_ended(
    runner: LocalProcessRunner,
) -> None:
    done = await runner.run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo done"])
    assert (done.returncode, done.stdout, done.timed_out) == (0, b"done\n", False)
    assert await runner.kill_all() == 1
    assert await runner.kill_all() == 0


async def test_a_daemon_that_holds_the_output_does_not_hang_the_run(
    runner: LocalProcessRunner, daemon: Callable[..., str]
) -> None:
    began = time.monotonic()
    done = await runner.run(["sh", "-c", daemon(output="") + "echo done"])
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert time.monotonic() - began < 30
    assert await runner.kill_all() == 1


async def test_a_daemon_that_goes_on_writing_does_not_hang_the_run(runner: LocalProcessRunner) -> None:
    began = time.monotonic()
    # It must outlive its pipe, which nobody reads any more: a failing write does not end it.
    writer = """setsid sh -c 'trap "" PIPE; touch up; while :; do echo more 2>/dev/null; sleep 0.05; done' &"""
    done = await runner.run(["sh", "-c", f"{writer} while [ ! -e up ]; do sleep 0.02; done"])
    assert done.returncode == 0
    assert time.monotonic() - began < 60
    assert await runner.kill_all() >= 1
    assert await runner.kill_all() == 0


async def test_cancellation_leaves_nothing(runner: LocalProcessRunner, tmp_path: Path) -> None:
    with anyio.move_on_after(0.5) as scope:
        await runner.run(["sh", "-c", "trap '' TERM; sleep 600 & while :; do sleep 0.05; done"])
    assert scope.cancelled_caught
    assert await runner.kill_all() == 0


async def test_cancellation_while_starting_leaves_nothing(runner: LocalProcessRunner) -> None:
    for delay in (0, 0.0005, 0.001, 0.002, 0.004):
        with anyio.move_on_after(delay):
            await runner.run(["sleep", "600"])
    await runner.kill_all()


async def test_twenty_at_once(runner: LocalProcessRunner) -> None:
    results: dict[int, bytes] = {}

    async def one(number: int) -> None:
        done = await runner.run(["sh", "-c", f"sleep 0.1; cat; echo {number}"], stdin=b"%d " % number)
        results[number] = done.stdout

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert results == {number: b"%d %d\n" % (number, number) for number in range(20)}
