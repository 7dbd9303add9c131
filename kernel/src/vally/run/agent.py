"""The agent part of a trial: one call of an executor under its deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from vally.errors import ExecutorError, TrialSkipped, VallyError
from vally.run.calling import described, invoke

if TYPE_CHECKING:
    from vally.model.evalspec import Stimulus
    from vally.model.trajectory import Trajectory
    from vally.records import Executor
    from vally.run.inputs import ExecutorOptions

TIMEOUT_GRACE_S = 10.0
"""How long an executor may take to return what it has after its deadline."""


async def run_agent(
    executor: Executor,
    stimulus: Stimulus,
    options: ExecutorOptions,
    *,
    blocking: bool = True,
    shutdown_timeout_s: float = 30.0,
    timeout_grace_s: float = TIMEOUT_GRACE_S,
) -> Trajectory:
    """Run the executor and return its trajectory.

    At `options.deadline` the stop signal is set with `timeout`; after the grace period the call is cancelled and all
    processes of the trial are killed. Raises `ExecutorError` (any other exception of the executor becomes one with
    the code `executor-exception`) and `TrialSkipped` when the executor declines or the run is being stopped.
    """
    call = _Call(executor, stimulus, options, blocking)
    with anyio.CancelScope() as scope, _watched(options, shutdown_timeout_s, timeout_grace_s, scope):
        await call.run()
    if call.finished:
        return _finished(call, options)
    with anyio.CancelScope(shield=True):
        await options.runner.kill_all()
    if options.stop.reason == "cancelled":
        raise TrialSkipped("cancelled")
    raise ExecutorError(f"Timeout after {options.timeout_ms}ms", code="timeout")


@contextmanager
def _watched(options: ExecutorOptions, shutdown_s: float, grace_s: float, scope: anyio.CancelScope) -> Iterator[None]:
    """Ask the agent to stop at its deadline, and give it up when it does not in time; timers cost less than tasks."""
    loop = asyncio.get_running_loop()
    timers = [loop.call_later(max(0.0, options.deadline - time.monotonic()), options.stop.set, "timeout")]

    def stopped(reason: str) -> None:
        # A run that is being stopped may shorten the grace of a trial that had timed out already, never lengthen it.
        timers.append(loop.call_later(grace_s if reason == "timeout" else shutdown_s, scope.cancel))

    with options.stop.heard_by(stopped):
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


class _Call:
    def __init__(self, executor: Executor, stimulus: Stimulus, options: ExecutorOptions, blocking: bool) -> None:
        self._executor = executor
        self._stimulus = stimulus
        self._options = options
        self._blocking = blocking
        self.finished = False
        self.value: Any = None
        self.error: Exception | None = None

    async def run(self) -> None:
        try:
            self.value = await invoke(self._executor.execute, self._stimulus, self._options, blocking=self._blocking)
        except Exception as error:
            self.error = error
        self.finished = True


def _finished(call: _Call, options: ExecutorOptions) -> Trajectory:
    from vally.model.metrics import settle_metrics
    from vally.model.trajectory import Trajectory
    from vally.run.simulation.simulated_user import warn_of_waiting, with_iteration_cap
    from vally.run.simulation.tool_overrides import mark_simulated

    cancelled = options.stop.reason == "cancelled"
    if call.error is not None:
        partial = getattr(call.error, "trajectory", None)
        if isinstance(partial, Trajectory) and isinstance(call.error, ExecutorError | TrialSkipped):
            call.error.trajectory = mark_simulated(partial, options.trial_dir)
        if cancelled:
            raise TrialSkipped("cancelled", trajectory=getattr(call.error, "trajectory", None)) from call.error
        raise _as_executor_error(call.error) from call.error
    if not isinstance(call.value, Trajectory):
        raise ExecutorError(
            f"the executor returned {type(call.value).__name__} instead of a trajectory", code="executor-exception"
        )
    if cancelled and call.value.end_reason in ("cancelled", None):
        raise TrialSkipped("cancelled", trajectory=call.value)
    warn_of_waiting(call.value, options.simulated_user, options.warn)
    value = with_iteration_cap(mark_simulated(call.value, options.trial_dir), options.simulated_user)
    # Metrics are counted by the kernel; of those an executor reports only the wall time and further keys count.
    return value.model_copy(update={"metrics": settle_metrics(value.metrics, value.events)})


def _as_executor_error(error: Exception) -> Exception:
    if isinstance(error, ExecutorError | TrialSkipped):
        return error
    if isinstance(error, VallyError) and error.code:
        return ExecutorError(error.message, code=error.code)
    return ExecutorError(described(error), code="executor-exception")
