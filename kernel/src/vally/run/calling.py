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

from vally.errors import PluginError

MAX_THREADS = 512
"""Upper bound of worker threads that sync plugin methods use at once; more calls wait."""

_PASSING = (KeyboardInterrupt, MemoryError, GeneratorExit)
"""What no plugin is blamed for."""


class PluginExit(Exception):
    """A plugin called `sys.exit`, cancelled itself, or raised what is no `Exception`; that ends the call, no more."""


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
    thread is left to end by itself and its result is dropped. What a plugin raises that is no `Exception`, such as
    `SystemExit` or the panic of a compiled library, becomes a `PluginExit`, and so does a cancellation that nobody
    here asked for.
    """
    try:
        if inspect.iscoroutinefunction(method) or not blocking:
            result = method(*args, **kwargs)
        else:
            call = partial(call_tamed, method, *args, **kwargs)
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        raise PluginExit("the plugin's own task was cancelled") from None
    except (Exception, *_PASSING):
        raise
    except BaseException as error:
        raise PluginExit(f"{type(error).__name__}: {error}") from None


def _is_cancelled() -> bool:
    """Whether the current task is cancelled from outside: by an enclosing scope, or as a task of the loop."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def call_tamed(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a sync method of a plugin; what it raises that is no `Exception` becomes a `PluginExit`."""
    try:
        return method(*args, **kwargs)
    except (Exception, *_PASSING):
        raise
    except BaseException as error:
        raise PluginExit(f"{type(error).__name__}: {error}") from None


def asked(method: Callable[..., Any], *args: Any) -> Any:
    """Call a method of a plugin that answers before a run starts, when nothing can be awaited."""
    answer = call_tamed(method, *args)
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError(f"{method.__name__} must not be async")
    return answer


def described(error: BaseException) -> str:
    """Type and text of an exception on one line, also when its own text cannot be had."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    if isinstance(error, PluginExit | PluginError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
