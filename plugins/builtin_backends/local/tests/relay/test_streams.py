"""Waiting for clients that is cancelled at the worst moment."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vally_backend_local.relay.streams import Stream, accepted

pytestmark = pytest.mark.anyio
LARGE = 2**23


@pytest.fixture
def pair() -> Iterator[tuple[Stream, socket.socket]]:
    here, there = socket.socketpair()
    with closing(here), closing(there):
        yield Stream(here), there


async def cancelled_meanwhile(waiting: Coroutine[Any, Any, object], happens: Callable[[], object]) -> list[str]:
    """Cancel what waits in the same round of the event loop that tells it to go on; what the loop complains of."""
    loop = asyncio.get_running_loop()
    told: list[str] = []
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: told.append(str(context.get("exception") or context["message"])))
    try:
        task = loop.create_task(waiting)
        # Long enough for it to wait for its socket.
        for _ in range(5):
            await asyncio.sleep(0)
        happens()
        loop.call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(before)
    return told


async def test_data_for_a_cancelled_reader(pair: tuple[Stream, socket.socket]) -> None:
    stream, there = pair
    assert await cancelled_meanwhile(stream.receive(9), lambda: there.send(b"kept")) == []
    assert await stream.receive(9) == b"kept"


async def test_room_for_a_cancelled_writer(pair: tuple[Stream, socket.socket]) -> None:
    stream, there = pair
    assert await cancelled_meanwhile(stream.send(bytes(LARGE)), lambda: there.recv(LARGE)) == []


async def test_a_client_for_a_cancelled_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(socket.socket(socket.AF_UNIX)) as listening, closing(socket.socket(socket.AF_UNIX)) as client:
        listening.bind("s")
        listening.listen()
        listening.setblocking(False)
        assert await cancelled_meanwhile(accepted(listening), lambda: client.connect("s")) == []
        (await accepted(listening)).close()


async def test_everything_arrives_and_then_the_end(pair: tuple[Stream, socket.socket]) -> None:
    stream, there = pair

    def read() -> int:
        return sum(len(piece) for piece in iter(lambda: there.recv(2**16), b""))

    reading = asyncio.create_task(asyncio.to_thread(read))
    await stream.send(bytes(LARGE))
    stream.send_eof()
    assert await reading == LARGE
    there.close()
    assert await stream.receive(9) == b""
    with pytest.raises(OSError, match="Broken pipe"):
        await stream.send(b"x")
