"""Waiting for the first of several things."""

from __future__ import annotations

import anyio
import pytest

from vally import first_result


async def answer(value: str) -> str:
    return value


async def never() -> str:
    await anyio.sleep_forever()
    raise AssertionError


async def fail() -> str:
    raise ValueError("broken")


@pytest.mark.anyio
async def test_the_first_that_ends_counts() -> None:
    assert await first_result(never, lambda: answer("a")) == "a"
    assert await first_result(lambda: answer("a"), fail) == "a"
    with pytest.raises(ValueError, match="broken"):
        await first_result(never, fail)


@pytest.mark.anyio
async def test_cancelling_cancels_all() -> None:
    with anyio.move_on_after(0.01) as scope:
        await first_result(never, never)
    assert scope.cancelled_caught
