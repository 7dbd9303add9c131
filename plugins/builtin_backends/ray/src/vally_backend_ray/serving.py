"""The bridge's end of the socket: methods are called as they are asked for, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from vally import VallyError
from vally_backend_ray.codes import FAILED
from vally_backend_ray.link import LENGTH_BYTES, Failure, framed
from vally_backend_ray.pickling import unpacked

Method = Callable[..., Awaitable[Any]]


def failure_of(error: BaseException) -> Failure:
    """What the driver is told of an exception."""
    if isinstance(error, VallyError):
        return Failure(error.message, error.code, error.hints)
    text = " ".join(str(error).split())
    return Failure(f"{type(error).__name__}: {text}" if text else type(error).__name__, FAILED)


class Server:
    """Serves one driver until it closes the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, name: str, arguments: object) -> None:
        """Tell the driver something, in order."""
        self._writer.write(framed((0, name, arguments)))

    async def serve(self, methods: Mapping[str, Method]) -> None:
        """Answer calls until the driver is gone, then cancel what still works."""
        try:
            while True:
                head = await self._reader.readexactly(LENGTH_BYTES)
                number, name, arguments = unpacked(await self._reader.readexactly(int.from_bytes(head, "big")))
                task = asyncio.create_task(self._answered(number, methods[name], arguments))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answered(self, number: int, method: Method, arguments: tuple[Any, ...]) -> None:
        failure = value = None
        try:
            value = await method(*arguments)
        except Exception as error:
            failure = failure_of(error)
        if number:
            self._writer.write(framed((number, value, failure)))
            await self._writer.drain()
