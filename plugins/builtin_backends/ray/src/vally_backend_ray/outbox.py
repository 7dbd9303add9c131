"""What a worker tells the driver while trials run, gathered into batches."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

BATCH_S = 0.25
"""Progress waits this long for more, so that there are at most four batches a second."""

IDLE_S = 30.0
LONGEST_BATCH = 2000

Message = tuple[str, str, Any]
"""Kind (`phase`, `event`, `judge`, `judge-cancel`), attempt, and what is told."""


class Outbox:
    """Messages that wait for the next poll; all calls happen in one event loop, `put_threadsafe` aside."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._messages: list[Message] = []
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._closed = False

    def put(self, message: Message, *, urgent: bool = False) -> None:
        """Add a message; an urgent one does not wait for others."""
        self._messages.append(message)
        self._arrived.set()
        if urgent or len(self._messages) >= LONGEST_BATCH:
            self._urgent.set()

    def put_threadsafe(self, message: Message) -> None:
        """As `put`, from any thread."""
        self._loop.call_soon_threadsafe(self.put, message)

    async def take(self) -> list[Message]:
        """The next batch; empty after a while without any message."""
        try:
            await asyncio.wait_for(self._arrived.wait(), IDLE_S)
        except TimeoutError:
            return []
        if not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), BATCH_S)
        return self._taken(None)

    def take_of(self, attempt: str) -> list[Message]:
        """What waits of one attempt, which has ended."""
        return self._taken(attempt)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        self._arrived.set()
        self._urgent.set()

    def _taken(self, attempt: str | None) -> list[Message]:
        taken = [message for message in self._messages if attempt in (None, message[1])]
        self._messages = [message for message in self._messages if attempt not in (None, message[1])]
        if not self._messages and not self._closed:
            self._arrived.clear()
            self._urgent.clear()
        return taken
