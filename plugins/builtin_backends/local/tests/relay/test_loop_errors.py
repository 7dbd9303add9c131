"""What an event loop tells of sockets that nobody reads any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from vally_backend_local import model_relays

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_data_for_a_cancelled_reader_is_no_error() -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    told: list[Any] = []
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    try:
        async with model_relays(), model_relays():
            done = loop.create_future()
            done.cancel()
            loop.call_soon(done.set_result, None)
            loop.call_soon(lambda: 1 / 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(before)
    assert len(told) == 1
    assert "lambda" in told[0]
