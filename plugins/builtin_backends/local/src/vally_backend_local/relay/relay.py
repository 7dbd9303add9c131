"""A relay: a socket on which the clients of one trial ask one provider."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path

import anyio

from vally_backend_local.relay.connection import Connection
from vally_backend_local.relay.limits import Limits
from vally_backend_local.relay.streams import Stream, accepted
from vally_backend_local.relay.upstream import Upstream

BACKLOG = 128
_PAUSE_S = 0.1
_LOG = logging.getLogger("vally.relay")


class Relay:
    """Passes on what arrives on the socket `path`, which does not exist yet, in a directory that is private.

    Raises OSError when it cannot be listened there.
    """

    def __init__(self, path: Path, upstream: Upstream, limits: Limits) -> None:
        self._socket = _listening(path)
        self._upstream = upstream
        self._limits = limits

    def discard(self) -> None:
        """Close what `serve` serves on."""
        self._socket.close()

    async def serve(self) -> None:
        """Serve until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                # Whoever waits for a place costs no descriptor.
                places = anyio.Semaphore(self._limits.connections)
                while True:
                    await places.acquire()
                    tasks.start_soon(self._connection, await self._next(), places)
        finally:
            self.discard()
            with anyio.CancelScope(shield=True):
                await self._upstream.close()

    async def _next(self) -> Stream:
        while True:
            try:
                return await accepted(self._socket)
            except OSError as error:
                _LOG.debug("the model relay could not take a connection: %s", error)
                await anyio.sleep(_PAUSE_S)

    async def _connection(self, stream: Stream, places: anyio.Semaphore) -> None:
        try:
            await Connection(stream, self._upstream, self._limits).serve()
        except Exception:
            # Others must not end with it.
            _LOG.debug("a connection of the model relay failed", exc_info=True)
        finally:
            places.release()


def _listening(path: Path) -> socket.socket:
    """A listening socket at a path of any length, that everybody can connect to who can enter its directory."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no sockets in directories")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            # The path of a socket has little room, and its directory is not looked up a second time.
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                made.bind(f"/proc/self/fd/{directory}/{path.name}")
                os.chmod(path.name, 0o666, dir_fd=directory)
            finally:
                os.close(directory)
        else:
            made.bind(str(path))
            path.chmod(0o666)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
