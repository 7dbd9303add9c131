"""The workers of a run as the bridge sees them: who is free, who was lost, who takes the place of whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vally import BackendError
from vally_backend_ray.codes import UNAVAILABLE
from vally_backend_ray.serving import failure_of

MOST_FAILED_STARTS = 3


class WorkerLost(Exception):
    """The process of a worker, or its node, is gone; the text says what is known of it."""


@dataclass(eq=False, slots=True)
class RemoteWorker:
    """A worker: `actor` answers calls, `free` counts trials that it could still take."""

    number: int
    actor: Any
    free: int
    facts: Mapping[str, Any]
    bundles: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    attempts: set[str] = field(default_factory=set)
    alive: bool = True

    @property
    def node(self) -> str:
        """The name of its machine."""
        return str(self.facts.get("node", ""))

    @property
    def title(self) -> str:
        """How people are told of it."""
        return f"worker {self.number} (pid {self.facts.get('pid')} on {self.node})"


class Crew:
    """Hands out workers.

    `hire` makes an actor and returns it with its facts. `on_loss` is told of each worker that
    is lost, with the attempts that it had.
    """

    def __init__(
        self,
        slots: int,
        hire: Callable[[int], Awaitable[tuple[Any, Mapping[str, Any]]]],
        on_loss: Callable[[RemoteWorker], None],
    ) -> None:
        self._slots = slots
        self._hire = hire
        self._on_loss = on_loss
        self._numbers = count(1)
        self._changed = asyncio.Condition()
        self._hiring: set[asyncio.Task[None]] = set()
        self._failed = 0
        self._failure: BackendError | None = None
        self._closed = False
        self.workers: list[RemoteWorker] = []

    async def open(self, size: int) -> None:
        """Hire workers and wait for the first. Raises `BackendError` when none can be had."""
        for _ in range(size):
            self._start_hiring()
        async with self._changed:
            await self._changed.wait_for(lambda: self.workers or not self._hiring or self._failure)
        if not self.workers:
            raise self._failure or BackendError("no worker could be started", code=UNAVAILABLE)

    async def acquire(self, avoid: Collection[str] = ()) -> RemoteWorker:
        """A worker with a free slot, the one with most of them; on a node of `avoid` only when there is no other.

        Raises `BackendError` when there are no workers any more and none can be had.
        """
        async with self._changed:
            while True:
                free = [worker for worker in self.workers if worker.free > 0]
                if free:
                    best = max(free, key=lambda worker: (worker.node not in avoid, worker.free, -worker.number))
                    best.free -= 1
                    return best
                if self._failure is not None and not self.workers and not self._hiring:
                    raise self._failure
                await self._changed.wait()

    async def release(self, worker: RemoteWorker) -> None:
        """Give a slot back."""
        async with self._changed:
            worker.free += 1
            self._changed.notify_all()

    async def lose(self, worker: RemoteWorker) -> None:
        """Take a worker out that is gone, and hire another one in its place; only the first call counts."""
        if not worker.alive:
            return
        worker.alive = False
        async with self._changed:
            self.workers.remove(worker)
            self._changed.notify_all()
        self._on_loss(worker)
        if not self._closed:
            self._start_hiring()

    async def close(self) -> None:
        """Hire nobody any more."""
        self._closed = True
        for task in list(self._hiring):
            task.cancel()
        await asyncio.gather(*self._hiring, return_exceptions=True)

    def _start_hiring(self) -> None:
        task = asyncio.create_task(self._hire_one(next(self._numbers)))
        self._hiring.add(task)

    async def _hire_one(self, number: int) -> None:
        found: RemoteWorker | BackendError
        try:
            actor, facts = await self._hire(number)
            found = RemoteWorker(number, actor, self._slots, facts)
        except Exception as error:
            # Whatever it is, those who wait for a worker must be told.
            found = failure_of(error).error()
        finally:
            current = asyncio.current_task()
            assert current is not None
            self._hiring.discard(current)
        async with self._changed:
            if isinstance(found, RemoteWorker):
                self._failed = 0
                self.workers.append(found)
            else:
                self._failed += 1
                self._failure = found
                if self._failed < MOST_FAILED_STARTS and self.workers and not self._closed:
                    self._start_hiring()
            self._changed.notify_all()
