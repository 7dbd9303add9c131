"""The driver's end of the socket between it and the bridge.

Frames are eight bytes of length and a packed tuple. The driver sends `(number, method, arguments)`, with number 0 when
it wants no answer; the bridge sends `(number, value, failure)` as an answer and `(0, name, arguments)` as a note.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from vally import BackendError
from vally_backend_ray.codes import FAILED
from vally_backend_ray.pickling import packed, unpacked

LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """An error on its way from the bridge; it is raised as a `BackendError`."""

    message: str
    code: str | None = None
    hints: tuple[str, ...] = ()

    def error(self) -> BackendError:
        """The error itself."""
        return BackendError(self.message, code=self.code, hints=self.hints)


def framed(value: object) -> bytes:
    """A value as a frame."""
    data = packed(value)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


class Link:
    """Calls methods of the bridge.

    Threads read and write, so that a bridge that is slow blocks nobody, and even code that blocks the event loop can
    wait for an answer. `on_note` is called in the event loop that made the link, `explain` when the bridge is gone, and
    returns what to say of it.
    """

    def __init__(self, connection: socket.socket, on_note: Callable[[str, Any], None], explain: Callable[[], str]):
        self._connection = connection
        self._on_note = on_note
        self._explain = explain
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._waiting: dict[int, concurrent.futures.Future[Any]] = {}
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone: BackendError | None = None
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method and return its value. Raises `BackendError`, also when the bridge is gone."""
        return await asyncio.wrap_future(self._sent(method, arguments))

    def call_blocking(self, method: str, *arguments: object, timeout: float) -> Any:
        """As `call`, for code that cannot await; raises `TimeoutError` after `timeout` seconds."""
        return self._sent(method, arguments).result(timeout)

    def tell(self, method: str, *arguments: object) -> None:
        """Call a method whose answer nobody needs; what goes wrong is not told."""
        self._frames.put(framed((0, method, arguments)))

    def close(self) -> None:
        """Close the socket, which ends the bridge, and wait for the threads."""
        self._frames.put(None)
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._connection.close()

    def _sent(self, method: str, arguments: tuple[object, ...]) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        number = next(self._numbers)
        self._waiting[number] = future
        if self._gone is not None:
            self._fail(self._gone)
        else:
            self._frames.put(framed((number, method, arguments)))
        return future

    def _write(self) -> None:
        # The thread that reads sees the end of a broken connection too, and says why.
        with suppress(OSError):
            while (frame := self._frames.get()) is not None:
                self._connection.sendall(frame)

    def _read(self) -> None:
        # A closed loop raises RuntimeError, and has nobody left to tell anything.
        with suppress(OSError, RuntimeError):
            while (frame := self._frame()) is not None:
                number, value, rest = unpacked(frame)
                if number:
                    self._answer(number, value, rest)
                else:
                    self._loop.call_soon_threadsafe(self._on_note, value, rest)
        self._gone = BackendError(self._explain(), code=FAILED)
        self._fail(self._gone)

    def _frame(self) -> bytes | None:
        head = self._exactly(LENGTH_BYTES)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            piece = self._connection.recv(min(size - len(data), 2**20))
            if not piece:
                return None
            data += piece
        return bytes(data)

    def _answer(self, number: int, value: object, failure: Failure | None) -> None:
        future = self._waiting.pop(number, None)
        # One that was cancelled is not waited for any more.
        if future is None or not future.set_running_or_notify_cancel():
            return
        if failure is None:
            future.set_result(value)
        else:
            future.set_exception(failure.error())

    def _fail(self, error: BackendError) -> None:
        for number in list(self._waiting):
            future = self._waiting.pop(number, None)
            if future is not None and future.set_running_or_notify_cancel():
                future.set_exception(error)
