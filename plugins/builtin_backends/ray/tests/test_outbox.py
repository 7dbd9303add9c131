"""What workers tell comes in batches, in order, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from vally_backend_ray import outbox as outbox_module
from vally_backend_ray.outbox import BATCH_S, Outbox


def run(test: Callable[[Outbox], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await test(Outbox())

    asyncio.run(main())


def test_progress_is_gathered() -> None:
    async def test(outbox: Outbox) -> None:
        outbox.put(("phase", "a", 1))
        asyncio.get_running_loop().call_later(BATCH_S / 2, outbox.put, ("phase", "b", 2))
        assert await outbox.take() == [("phase", "a", 1), ("phase", "b", 2)]

    run(test)


def test_questions_do_not_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "BATCH_S", 1000.0)

    async def test(outbox: Outbox) -> None:
        outbox.put(("phase", "a", 1))
        outbox.put(("judge", "a", 2), urgent=True)
        assert await outbox.take() == [("phase", "a", 1), ("judge", "a", 2)]

    run(test)


def test_what_is_left_of_an_attempt_goes_with_its_result() -> None:
    async def test(outbox: Outbox) -> None:
        for number in range(3):
            outbox.put(("event", "a", number))
            outbox.put(("event", "b", number))
        assert [value for _, _, value in outbox.take_of("a")] == [0, 1, 2]
        assert [attempt for _, attempt, _ in await outbox.take()] == ["b", "b", "b"]

    run(test)


def test_threads_may_tell_too() -> None:
    async def test(outbox: Outbox) -> None:
        await asyncio.to_thread(outbox.put_threadsafe, ("event", "a", 1))
        assert await outbox.take() == [("event", "a", 1)]

    run(test)


def test_nobody_waits_for_one_that_is_closed() -> None:
    async def test(outbox: Outbox) -> None:
        waiting = asyncio.ensure_future(outbox.take())
        await asyncio.sleep(0)
        outbox.close()
        assert await waiting == []

    run(test)
