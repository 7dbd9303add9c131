"""The agent part of a trial: deadlines, stops and what executors may do wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError, ExecutorOptions, Stimulus, StopSignal, Trajectory, TrialSkipped, run_agent


class Runner:
    """Counts how often everything was killed."""

    network = "host"

    def __init__(self) -> None:
        self.killed = 0

    async def kill_all(self, grace: float = 2.0) -> int:
        self.killed += 1
        return 0


def options(tmp_path: Path, *, timeout_ms: int = 5_000) -> ExecutorOptions:
    return ExecutorOptions(
        item_id="item",
        trial_id="trial",
        work_dir=tmp_path,
        trial_dir=tmp_path,
        spec_dir=tmp_path,
        timeout_ms=timeout_ms,
        deadline=time.monotonic() + timeout_ms / 1000,
        runner=Runner(),  # type: ignore[arg-type]  # only the part that is used
    )


class Executor:
    def __init__(self, execute: Callable[..., Any]) -> None:
        self.execute = execute


def run(execute: Callable[..., Any], given: ExecutorOptions, **kwargs: Any) -> Trajectory:
    stimulus = Stimulus(name="s", prompt="p", turns=("p",))

    async def main() -> Trajectory:
        return await run_agent(Executor(execute), stimulus, given, **kwargs)  # type: ignore[arg-type]

    return anyio.run(main)


def test_returns_what_an_async_executor_returns(tmp_path: Path) -> None:
    async def execute(stimulus: Stimulus, _: ExecutorOptions) -> Trajectory:
        return Trajectory(output=stimulus.prompt)

    assert run(execute, options(tmp_path)).output == "p"


def test_runs_a_sync_executor_in_a_thread(tmp_path: Path) -> None:
    def execute(*_: Any) -> Trajectory:
        time.sleep(0.01)
        return Trajectory(output="sync")

    assert run(execute, options(tmp_path)).output == "sync"


def test_a_deadline_asks_the_executor_to_stop_and_keeps_its_trajectory(tmp_path: Path) -> None:
    async def execute(_: Stimulus, given: ExecutorOptions) -> Trajectory:
        reason = await given.stop.wait()
        return Trajectory(output=reason, end_reason="agent_timeout")

    trajectory = run(execute, options(tmp_path, timeout_ms=50))
    assert (trajectory.output, trajectory.end_reason) == ("timeout", "agent_timeout")


def test_an_executor_that_does_not_stop_is_cancelled_and_its_processes_killed(tmp_path: Path) -> None:
    async def execute(*_: Any) -> Trajectory:
        await anyio.sleep_forever()
        raise AssertionError

    given = options(tmp_path, timeout_ms=50)
    with pytest.raises(ExecutorError, match=r"^Timeout after 50ms$") as caught:
        run(execute, given, timeout_grace_s=0.05)
    assert caught.value.code == "timeout"
    assert not caught.value.retryable
    assert given.runner.killed == 1  # type: ignore[attr-defined]


def test_a_sync_executor_that_hangs_does_not_hold_the_run(tmp_path: Path) -> None:
    def execute(*_: Any) -> Trajectory:
        time.sleep(1.5)
        return Trajectory()

    started = time.monotonic()
    with pytest.raises(ExecutorError, match="Timeout"):
        run(execute, options(tmp_path, timeout_ms=50), timeout_grace_s=0.05)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("returns", [True, False])
def test_a_cancelled_trial_is_skipped_with_what_there_is(tmp_path: Path, returns: bool) -> None:
    async def execute(_: Stimulus, given: ExecutorOptions) -> Trajectory:
        await given.stop.wait()
        if not returns:
            await anyio.sleep_forever()
        return Trajectory(output="so far", end_reason="cancelled")

    given = options(tmp_path)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel, given.stop)
            stimulus = Stimulus(name="s", prompt="p", turns=("p",))
            await run_agent(Executor(execute), stimulus, given, shutdown_timeout_s=0.05)  # type: ignore[arg-type]

    with pytest.raises(BaseExceptionGroup) as caught:
        anyio.run(main)
    (error,) = caught.value.exceptions
    assert isinstance(error, TrialSkipped)
    assert str(error) == "cancelled"
    assert (error.trajectory is not None) is returns


async def _cancel(stop: StopSignal) -> None:
    await anyio.sleep(0.02)
    stop.set("cancelled")


def test_an_agent_that_finished_in_spite_of_a_cancel_keeps_its_trajectory(tmp_path: Path) -> None:
    async def execute(_: Stimulus, given: ExecutorOptions) -> Trajectory:
        given.stop.set("cancelled")
        return Trajectory(output="done", end_reason="completed")

    assert run(execute, options(tmp_path)).output == "done"


@pytest.mark.parametrize(
    ("raises", "message"),
    [
        (ValueError("bad\nthing"), "ValueError: bad thing"),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_any_exception_becomes_an_executor_error(
    tmp_path: Path, raises: BaseException, message: str, kind: str
) -> None:
    def execute(*_: Any) -> Trajectory:
        raise raises

    async def aexecute(*_: Any) -> Trajectory:
        raise raises

    with pytest.raises(ExecutorError) as caught:
        run(execute if kind == "sync" else aexecute, options(tmp_path))
    assert (caught.value.message, caught.value.code) == (message, "executor-exception")


def test_an_executor_error_keeps_its_facts(tmp_path: Path) -> None:
    error = ExecutorError("down", code="provider-error", retryable=True, retry_after_ms=7, details={"status": 500})

    async def execute(*_: Any) -> Trajectory:
        raise error

    with pytest.raises(ExecutorError) as caught:
        run(execute, options(tmp_path))
    assert caught.value is error


@pytest.mark.parametrize("value", [None, {"output": "x"}, 3])
def test_what_is_not_a_trajectory_is_an_error(tmp_path: Path, value: object) -> None:
    async def execute(*_: Any) -> object:
        return value

    with pytest.raises(ExecutorError, match="instead of a trajectory"):
        run(execute, options(tmp_path))
