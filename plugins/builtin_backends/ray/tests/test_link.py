"""The socket between vally and the bridge."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from vally import BackendError
from vally_backend_ray.link import Link
from vally_backend_ray.serving import Server


class Methods:
    """What the other end can be asked."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seen: list[str] = []
        self.waiting = asyncio.Event()

    async def echo(self, *values: Any) -> Any:
        return values

    async def fail(self) -> None:
        raise BackendError("no room", code="ray-unavailable", hints=("make some",))

    async def crash(self) -> None:
        raise ValueError("two\nlines")

    async def note(self, text: str) -> None:
        self.seen.append(text)
        self.server.note("told", text)

    async def wait(self) -> None:
        self.waiting.set()
        await asyncio.Event().wait()


class Ends:
    def __init__(self, link: Link, methods: Methods, notes: list[tuple[str, Any]], serving: asyncio.Task[None]) -> None:
        self.link, self.methods, self.notes, self.serving = link, methods, notes, serving


@asynccontextmanager
async def connected() -> AsyncIterator[Ends]:
    here, there = socket.socketpair()
    notes: list[tuple[str, Any]] = []
    link = Link(here, lambda name, told: notes.append((name, told)), lambda: "the other end is gone: because")
    reader, writer = await asyncio.open_connection(sock=there)
    server = Server(reader, writer)
    methods = Methods(server)
    asked = {name: getattr(methods, name) for name in ("echo", "fail", "crash", "note", "wait")}
    serving = asyncio.create_task(server.serve(asked))
    try:
        yield Ends(link, methods, notes, serving)
    finally:
        await asyncio.to_thread(link.close)
        await serving
        writer.close()


def run(test: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), connected() as ends:
            await test(ends)

    asyncio.run(main())


def test_values_of_any_size_and_many_at_once() -> None:
    async def test(ends: Ends) -> None:
        large = b"x" * (3 * 2**20)
        answers = await asyncio.gather(*(ends.link.call("echo", number, large) for number in range(5)))
        assert answers == [(number, large) for number in range(5)]

    run(test)


def test_errors_keep_their_words() -> None:
    async def test(ends: Ends) -> None:
        with pytest.raises(BackendError) as caught:
            await ends.link.call("fail")
        assert (caught.value.message, caught.value.code) == ("no room", "ray-unavailable")
        assert caught.value.hints == ("make some",)
        with pytest.raises(BackendError, match="ValueError: two lines"):
            await ends.link.call("crash")

    run(test)


def test_notes_arrive_in_the_loop_and_in_order() -> None:
    async def test(ends: Ends) -> None:
        for number in range(20):
            ends.link.tell("note", str(number))
        await ends.link.call("note", "last")
        await asyncio.sleep(0)
        assert [told for _, told in ends.notes] == [*map(str, range(20)), "last"]

    run(test)


def test_code_that_blocks_the_loop_can_ask() -> None:
    # The other end has a loop of its own, as it is a process of its own.
    here, there = socket.socketpair()

    def serve() -> None:
        async def main() -> None:
            reader, writer = await asyncio.open_connection(sock=there)
            server = Server(reader, writer)
            await server.serve({"echo": Methods(server).echo})
            writer.close()

        asyncio.run(main())

    thread = threading.Thread(target=serve)
    thread.start()

    async def main() -> None:
        link = Link(here, lambda *_: None, lambda: "gone")
        assert link.call_blocking("echo", 1, timeout=10) == (1,)
        link.close()

    asyncio.run(main())
    thread.join()


def test_the_end_of_the_other_end_fails_what_waits_and_what_comes_later() -> None:
    async def test(ends: Ends) -> None:
        waiting = asyncio.create_task(ends.link.call("wait"))
        await ends.methods.waiting.wait()
        ends.methods.server._writer.close()
        with pytest.raises(BackendError, match="the other end is gone: because") as caught:
            await waiting
        assert caught.value.code == "ray-failed"
        with pytest.raises(BackendError, match="because"):
            await ends.link.call("echo")
        ends.link.tell("note", "nobody hears this")

    run(test)


def test_a_call_that_is_given_up_harms_no_other() -> None:
    async def test(ends: Ends) -> None:
        waiting = asyncio.create_task(ends.link.call("wait"))
        await ends.methods.waiting.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await ends.link.call("echo", "still here") == ("still here",)

    run(test)
