"""Calling methods of plugins, which may be sync or async."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

MAX_THREADS = 512
"""Upper bound of worker threads that sync plugin methods use at once; more calls wait."""


def thread_limiter() -> anyio.CapacityLimiter:
    """A limiter that never makes one trial wait for another: the default of anyio is 40 threads."""
    return anyio.CapacityLimiter(MAX_THREADS)


async def invoke(
    method: Callable[..., Any],
    *args: Any,
    blocking: bool = True,
    limiter: anyio.CapacityLimiter | None = None,
    **kwargs: Any,
) -> Any:
    """Call a plugin's method and await what is awaitable.

    A sync method runs in a worker thread, unless `blocking` is False. It cannot be cancelled: on cancellation its
    thread is left to end by itself and its result is dropped.
    """
    if inspect.iscoroutinefunction(method) or not blocking:
        result = method(*args, **kwargs)
    else:
        result = await anyio.to_thread.run_sync(
            partial(method, *args, **kwargs), abandon_on_cancel=True, limiter=limiter
        )
    return await result if inspect.isawaitable(result) else result
