"""Asynchronous tests of what runs in an event loop of its own, such as actors."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable

LIMIT_S = 60.0


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that runs in an event loop, and fails instead of waiting for ever."""

    @functools.wraps(test)
    def wrapped(*arguments: object, **named: object) -> None:
        async def main() -> None:
            async with asyncio.timeout(LIMIT_S):
                await test(*arguments, **named)

        asyncio.run(main())

    wrapped.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]  # pytest looks there for fixtures
    return wrapped
