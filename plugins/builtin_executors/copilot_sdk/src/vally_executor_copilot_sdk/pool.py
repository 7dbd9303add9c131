"""Few runtime processes for many sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from vally import ExecutorError
from vally_executor_copilot_sdk.client import ClientSettings, RuntimeClient

MOST_SESSIONS_SERVED = 200
"""A process that served so many is replaced, so that what it gathers does not grow with the run."""


@dataclass(eq=False)
class _Pooled:
    client: RuntimeClient
    starting: asyncio.Task[None]
    active: int = 0
    served: int = 0

    @property
    def usable(self) -> bool:
        return self.client.failure is None and self.served < MOST_SESSIONS_SERVED


class ClientPool:
    """Clients by what their processes must be; each serves so many sessions at once, then another one starts.

    The executor has one pool per run, and so may others that talk to Copilot, such as a judge.
    """

    def __init__(self) -> None:
        self._pooled: dict[Hashable, list[_Pooled]] = {}
        self._closed = False

    @property
    def clients(self) -> tuple[RuntimeClient, ...]:
        """Those that were started and not ended yet."""
        return tuple(pooled.client for group in self._pooled.values() for pooled in group)

    @asynccontextmanager
    async def lease(
        self, key: Hashable | None, make: Callable[[], ClientSettings], *, sessions: int = 1
    ) -> AsyncIterator[RuntimeClient]:
        """A started client for one session, shared with leases of an equal key, at most `sessions` at once.

        Without a key it is shared with nobody. `make` is called when another process is needed. Raises `ExecutorError`.
        """
        group = self._pooled.setdefault(object() if key is None else key, [])
        pooled = self._choose(group, make, sessions)
        pooled.active += 1
        pooled.served += 1
        try:
            # Cancelling one that waits must not end a start that others wait for.
            await asyncio.shield(pooled.starting)
            yield pooled.client
        finally:
            pooled.active -= 1
            if pooled.active == 0 and (key is None or not pooled.usable):
                await self._end(group, pooled)

    async def shutdown(self) -> None:
        """End every process; those that use one are told that it is gone."""
        self._closed = True
        for group in list(self._pooled.values()):
            for pooled in list(group):
                await self._end(group, pooled)

    def _choose(self, group: list[_Pooled], make: Callable[[], ClientSettings], sessions: int) -> _Pooled:
        if self._closed:
            raise ExecutorError("the executor was shut down", code="session-lost", retryable=True)
        free = (pooled for pooled in group if pooled.usable and pooled.active < sessions)
        chosen = min(free, key=lambda pooled: pooled.active, default=None)
        if chosen is None:
            client = RuntimeClient(make())
            chosen = _Pooled(client, asyncio.create_task(client.start()))
            # Those that waited may all be gone when it fails.
            chosen.starting.add_done_callback(lambda task: task.cancelled() or task.exception())
            group.append(chosen)
        return chosen

    async def _end(self, group: list[_Pooled], pooled: _Pooled) -> None:
        if pooled in group:
            group.remove(pooled)
        if not group:
            self._pooled = {key: others for key, others in self._pooled.items() if others}
        with anyio.CancelScope(shield=True):
            if not pooled.starting.done():
                pooled.starting.cancel()
                await asyncio.wait([pooled.starting])
            await pooled.client.close()
