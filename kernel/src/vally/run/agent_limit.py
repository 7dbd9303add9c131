"""The end of an agent's time: asked for by the kernel, or kept by the executor itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vally.run.inputs import ExecutorOptions


class AgentLimit:
    """When an executor must end its agent: at the stop signal, or `max_agent_duration_ms` after this was made."""

    def __init__(self, options: ExecutorOptions) -> None:
        self._stop = options.stop
        duration = options.max_agent_duration_ms
        self._soft_deadline = float("inf") if duration is None else time.monotonic() + duration / 1000

    @property
    def reached(self) -> bool:
        """Whether the agent's time is over."""
        return self._stop.reason is not None or time.monotonic() >= self._soft_deadline

    async def wait(self) -> None:
        """Return when the agent's time is over."""
        with anyio.move_on_after(self._soft_deadline - time.monotonic()):
            await self._stop.wait()

    async def run(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Do some work and return True; at the end of the agent's time it is cancelled, and False returned.

        An exception of the work is raised as it is.
        """
        failure: Exception | None = None
        finished = False
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await self.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                await work()
                finished = True
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return finished
