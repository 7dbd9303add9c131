"""Blocking work that can be stopped, and what runs beside a trial."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from vally import StopSignal
from vally_backend_local.work import (
    OncePerKey,
    Stopped,
    Work,
    call_plugin,
    run_work,
    until_stopped,
    with_companion,
)


def test_work_returns_and_raises() -> None:
    async def main() -> int:
        with pytest.raises(ZeroDivisionError):
            await run_work(lambda _: 1 // 0)
        return await run_work(lambda _: 3)

    assert anyio.run(main) == 3


def test_cancelled_work_has_stopped_when_the_caller_goes_on() -> None:
    seen: list[str] = []

    def endless(work: Work) -> None:
        work.on_cancel(lambda: seen.append("ended"))
        try:
            while True:
                work.checkpoint()
                time.sleep(0.001)
        finally:
            seen.append("stopped")

    async def main() -> None:
        with anyio.move_on_after(0.05):
            await run_work(endless)
        seen.append("after")

    anyio.run(main)
    assert seen == ["ended", "stopped", "after"]


def test_an_end_named_too_late_is_called_at_once() -> None:
    work, seen = Work(), []
    work.cancel()
    work.on_cancel(lambda: seen.append("ended"))
    assert seen == ["ended"]


def test_main_is_stopped_by_the_signal() -> None:
    async def main() -> None:
        stop = StopSignal()

        async def work() -> None:
            stop.set("cancelled")
            await anyio.sleep(60)

        with pytest.raises(Stopped):
            await until_stopped(stop, work)

    anyio.run(main)


def test_errors_of_main_come_out_as_they_are() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def main() -> None:
        with pytest.raises(KeyError):
            await until_stopped(StopSignal(), fail)
        with pytest.raises(KeyError):
            await with_companion(anyio.sleep_forever, fail)

    anyio.run(main)


def test_plugins_may_be_sync_or_async() -> None:
    async def later(value: int) -> int:
        return value

    threads = []

    def now(value: int) -> int:
        threads.append(threading.current_thread() is threading.main_thread())
        return value

    async def main() -> list[int]:
        calls = [call_plugin(later, 1, blocking=True), call_plugin(now, 2, blocking=True)]
        return [await call for call in [*calls, call_plugin(now, 3, blocking=False)]]

    assert anyio.run(main) == [1, 2, 3]
    assert threads == [False, True]


def test_a_value_is_made_once_and_a_failure_again() -> None:
    values: OncePerKey[int] = OncePerKey()
    made: list[int] = []

    def make() -> int:
        made.append(1)
        if len(made) == 1:
            raise ZeroDivisionError
        return len(made)

    with pytest.raises(ZeroDivisionError):
        values.get("key", make)
    assert [values.get("key", make) for _ in range(3)] == [2, 2, 2]
    values.forget("key")
    assert values.get("key", make) == 3
