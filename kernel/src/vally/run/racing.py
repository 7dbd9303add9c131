"""Waiting for the first of several things."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def first_result(*works: Callable[[], Awaitable[T]]) -> T:
    """Start all, and return the result of the first one that ends; the others are cancelled.

    Its exception is raised as it is.
    """
    results: list[T] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def run(work: Callable[[], Awaitable[T]]) -> None:
            try:
                results.append(await work())
            except Exception as error:
                failures.append(error)
            tasks.cancel_scope.cancel()

        for work in works:
            tasks.start_soon(run, work)
    # What ended in order counts, although something else may have failed in the same moment.
    if results:
        return results[0]
    raise failures[0]
