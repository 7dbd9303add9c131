"""Reading what a process writes, in bounded memory and without trust that it ever ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import ByteReceiveStream, ByteSendStream

CHUNK_BYTES = 65536
QUIET_SECONDS = 0.5
LATEST_SECONDS = 5.0


class OutputBuffer:
    """The first `limit` bytes of a stream; the rest is read, so that the writer never blocks, and dropped."""

    def __init__(self, limit: int, on_output: Callable[[bytes], None] | None = None) -> None:
        self._limit = limit
        self._on_output = on_output
        self._kept = bytearray()
        self.received = 0
        self.ended = anyio.Event()

    @property
    def content(self) -> bytes:
        return bytes(self._kept)

    @property
    def truncated(self) -> bool:
        return self.received > len(self._kept)

    async def fill(self, stream: ByteReceiveStream) -> None:
        """Read `stream` until its end."""
        try:
            while True:
                self._take(await stream.receive(CHUNK_BYTES))
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.ended.set()

    def _take(self, chunk: bytes) -> None:
        self.received += len(chunk)
        self._kept += chunk[: max(0, self._limit - len(self._kept))]
        if self._on_output:
            self._on_output(chunk)


async def send_all(stream: ByteSendStream, content: bytes) -> None:
    """Write `content` and close; a reader that has gone or closed its input is no error."""
    try:
        await stream.send(content)
        await stream.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        return


async def settle(buffers: Sequence[OutputBuffer]) -> None:
    """Wait for the end of all streams, or until they are quiet.

    Called when the process has ended: what it wrote arrives at once, but a daemon that left its group may hold the
    pipe open for ever, or go on writing.
    """
    with anyio.move_on_after(LATEST_SECONDS):
        received = -1
        while (now := sum(buffer.received for buffer in buffers)) != received:
            received = now
            with anyio.move_on_after(QUIET_SECONDS):
                for buffer in buffers:
                    await buffer.ended.wait()
                return
