"""Calling methods of plugins, which may be sync or async."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

MAX_THREADS = 512
"""Upper bound of worker threads that sync plugin methods use at once; more calls wait."""


class PluginExit(Exception):
    """A plugin called `sys.exit`, or cancelled itself; that ends the call, never the program."""


def raise_thread_limit() -> None:
    """Let the event loop use that many threads: by default 40 sync executors would keep results from being written."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, MAX_THREADS)


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
    thread is left to end by itself and its result is dropped. `SystemExit` of a plugin becomes a `PluginExit`, and so
    does a cancellation that nobody here asked for.
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
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        raise PluginExit("the plugin's own task was cancelled") from None


def _is_cancelled() -> bool:
    """Whether the current task is cancelled from outside: by an enclosing scope, or as a task of the loop."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def _without_exit(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # A SystemExit that reaches the top of a worker thread would be lost there.
    try:
        return method(*args, **kwargs)
    except SystemExit as exit_:
        raise PluginExit(f"SystemExit: {exit_.code}") from None
