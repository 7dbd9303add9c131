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


class PluginExit(Exception):
    """A plugin called `sys.exit`; that ends the call, never the program."""


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
    thread is left to end by itself and its result is dropped. `SystemExit` of a plugin becomes a `PluginExit`.
    """
    try:
        if inspect.iscoroutinefunction(method) or not blocking:
            result = method(*args, **kwargs)
        else:
            call = partial(_without_exit, method, *args, **kwargs)
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        return await result if inspect.isawaitable(result) else result
    except SystemExit as exit_:
        raise PluginExit(f"SystemExit: {exit_.code}") from None


def _without_exit(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # A SystemExit that reaches the top of a worker thread would be lost there.
    try:
        return method(*args, **kwargs)
    except SystemExit as exit_:
        raise PluginExit(f"SystemExit: {exit_.code}") from None
