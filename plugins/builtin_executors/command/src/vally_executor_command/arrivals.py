"""When the lines of an output arrived, and when it became too long."""

from __future__ import annotations

import anyio

from vally import timestamp


class Arrivals:
    """Notes the time of every line end in a stream of bytes; `too_much` is set beyond `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.too_much = anyio.Event()
        self.times: list[str] = []
        self._limit = limit
        self._received = 0

    def take(self, chunk: bytes) -> None:
        """The next piece of the output."""
        self._received += len(chunk)
        if self._received > self._limit:
            self.too_much.set()
            return
        self.times += [timestamp()] * chunk.count(b"\n")
