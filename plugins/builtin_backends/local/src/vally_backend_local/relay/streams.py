"""Connections of clients, and waiting for them, that may be cancelled at any moment.

The Unix sockets of anyio make the event loop report an error when data arrive just for a reader that was cancelled;
what waits for a socket apart from using it, as here, does not. A relay cancels a reader with every request.
"""

from __future__ import annotations

import socket

import anyio
import anyio.lowlevel


class Stream:
    """A connected socket. Raises OSError when the other side is gone."""

    def __init__(self, made: socket.socket) -> None:
        made.setblocking(False)
        self._socket = made

    async def receive(self, most: int) -> bytes:
        """The next bytes, `most` of them; none at the end."""
        while True:
            await anyio.wait_readable(self._socket)
            try:
                return self._socket.recv(most)
            except BlockingIOError:
                continue

    async def send(self, data: bytes) -> None:
        """Send everything."""
        await anyio.lowlevel.checkpoint()
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    def send_eof(self) -> None:
        """Say that nothing follows."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both directions; nobody may be waiting."""
        self._socket.close()


async def accepted(listening: socket.socket) -> Stream:
    """The next connection. Raises OSError."""
    while True:
        await anyio.wait_readable(listening)
        try:
            return Stream(listening.accept()[0])
        except BlockingIOError:
            continue
