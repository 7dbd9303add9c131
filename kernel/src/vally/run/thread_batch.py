"""Sync graders in worker threads: all in one as long as they are quick, the rest at once as soon as they are not."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.run.calling import PluginExit

if TYPE_CHECKING:
    from vally.model.results import GraderResult
    from vally.run.entry_grading import EntryGrader

PATIENCE_S = 0.1
"""After this long the graders that still wait get threads of their own: the one at work may take for ever."""


class ThreadBatch:
    """Runs graders that may run at the same time, or strictly `in_order`; to be used once, from an event loop.

    `store` is called with the index and the result of each, in any thread. When the task is cancelled, no further
    grader starts, and what the one at work returns is dropped.
    """

    def __init__(
        self,
        graders: Iterable[tuple[int, EntryGrader]],
        store: Callable[[int, GraderResult], None],
        limiter: anyio.CapacityLimiter,
        *,
        in_order: bool = False,
    ) -> None:
        self._patience = math.inf if in_order else PATIENCE_S
        self._waiting = deque(graders)
        self._count = len(self._waiting)
        self._taken: deque[int] = deque()
        self._store = store
        self._limiter = limiter
        self._unawaited: deque[tuple[int, EntryGrader, Awaitable[Any]]] = deque()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._done: anyio.Event | None = None

    async def run(self) -> None:
        """Run all; returns when each has its result."""
        try:
            with anyio.move_on_after(self._patience) as patience:
                await self._in_thread()
            if patience.cancelled_caught:
                await self._spread()
            for index, grader, value in self._unawaited:
                self._store(index, await grader.awaited(value))
        finally:
            self._stopped = True

    async def _spread(self) -> None:
        # Whether the first thread is at work or was too late to begin cannot be told, so results are waited for.
        done = self._done = anyio.Event()
        if len(self._taken) == self._count:
            return
        async with anyio.create_task_group() as group:
            for _ in range(len(self._waiting)):
                group.start_soon(self._in_thread)
            await done.wait()

    async def _in_thread(self) -> None:
        await anyio.to_thread.run_sync(self._work, abandon_on_cancel=True, limiter=self._limiter)

    def _work(self) -> None:
        while not self._stopped:
            try:
                index, grader = self._waiting.popleft()
            except IndexError:
                return
            self._take(index, grader, attempted(grader))

    def _take(self, index: int, grader: EntryGrader, value: GraderResult | Awaitable[Any]) -> None:
        if inspect.isawaitable(value):
            self._unawaited.append((index, grader, value))
        elif not self._stopped:
            self._store(index, value)
        self._taken.append(index)
        done = self._done
        if done is not None and len(self._taken) == self._count:
            # The loop may have ended while the last grader was at work.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done.set)


def attempted(grader: EntryGrader) -> GraderResult | Awaitable[Any]:
    """Call a sync grader in a thread that no signal can reach, so that what it raises is its own doing."""
    try:
        return grader.attempt()
    except BaseException as error:
        return grader.failed(PluginExit(f"{type(error).__name__}: {error}".removesuffix(": ")))
