"""Blocking work of a trial in a worker thread that can be told to stop."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread

from vally import StopSignal, invoke

T = TypeVar("T")


class WorkCancelled(Exception):
    """The work was told to stop."""


class Work:
    """The side of the thread: asks now and then whether to go on, and names what has to be ended at once."""

    def __init__(self) -> None:
        self._cancelled = False
        self._enders: list[Callable[[], None]] = []

    def checkpoint(self) -> None:
        """Raise `WorkCancelled` when nobody wants the result any more."""
        if self._cancelled:
            raise WorkCancelled

    def on_cancel(self, end: Callable[[], None]) -> None:
        """Have `end` called, from another thread, when the work is cancelled; at once when it is already."""
        self._enders.append(end)
        if self._cancelled:
            end()

    def cancel(self) -> None:
        """Tell the thread to stop."""
        self._cancelled = True
        for end in list(self._enders):
            end()


async def run_work(function: Callable[[Work], T], *, limiter: anyio.CapacityLimiter | None = None) -> T:
    """Run `function` in a worker thread; a cancelled caller waits until the function has stopped."""
    work = Work()
    result: list[T] = []

    def call() -> None:
        result.append(function(work))

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if not result:
                work.cancel()

    async def wait() -> None:
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(call, limiter=limiter)
        except WorkCancelled:
            await anyio.sleep_forever()

    await with_companion(watch, wait)
    return result[0]


class Stopped(Exception):
    """The run asked the trial to stop."""


async def until_stopped(stop: StopSignal, main: Callable[[], Awaitable[T]]) -> T:
    """Run `main`; raises `Stopped`, after cancelling it, when the stop signal is set."""
    if stop.reason is None:
        with anyio.CancelScope() as scope, stop.heard_by(lambda _: scope.cancel()):
            return await main()
    raise Stopped


async def with_companion(companion: Callable[[], Coroutine[Any, Any, None]], main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` while `companion` runs beside it, and return or raise what `main` does."""
    failure: Exception | None = None
    result: list[T] = []
    async with anyio.create_task_group() as group:
        group.start_soon(companion)
        try:
            result.append(await main())
        except Exception as error:
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result[0]


async def call_plugin(method: Callable[..., Any], *args: Any, blocking: bool, **kwargs: Any) -> Any:
    """Call a method of a plugin, which may be sync or async; whatever it does, it raises nothing but `Exception`."""
    return await invoke(method, *args, blocking=blocking, **kwargs)


class OncePerKey(Generic[T]):
    """Values made once per key, by one thread while others that want the same wait; failures are not kept."""

    def __init__(self) -> None:
        self._values: dict[Hashable, T] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._guard = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of `key`, made now when there is none."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._values:
                self._values[key] = make()
            return self._values[key]

    def forget(self, key: Hashable) -> None:
        """Have the value made again at the next time."""
        with self._guard:
            self._values.pop(key, None)
