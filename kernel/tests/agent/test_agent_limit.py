"""The end of an agent's time."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from vally import AgentLimit, ExecutorError
from vally.testing import executor_options


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def for_ever() -> None:
    await anyio.sleep_forever()


async def nothing() -> None:
    return None


@pytest.mark.anyio
async def test_work_within_the_time(tmp_path: Path) -> None:
    limit = AgentLimit(executor_options(tmp_path))
    assert await limit.run(nothing)
    assert not limit.reached


@pytest.mark.anyio
async def test_a_stop_ends_the_work(tmp_path: Path) -> None:
    options = executor_options(tmp_path)
    limit = AgentLimit(options)

    async def asks_to_stop() -> None:
        options.stop.set("cancelled")
        await anyio.sleep_forever()

    assert not await limit.run(asks_to_stop)
    assert limit.reached
    assert not await limit.run(for_ever)


@pytest.mark.anyio
async def test_the_soft_limit_ends_the_work(tmp_path: Path) -> None:
    limit = AgentLimit(executor_options(tmp_path, max_agent_duration_ms=1))
    assert not await limit.run(for_ever)
    assert limit.reached


@pytest.mark.anyio
async def test_errors_of_the_work_are_raised_as_they_are(tmp_path: Path) -> None:
    async def fails() -> None:
        raise ExecutorError("broken", code="agent-protocol")

    with pytest.raises(ExecutorError, match="broken"):
        await AgentLimit(executor_options(tmp_path)).run(fails)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "provider-error", False),
        (401, "provider-auth", False),
        (403, "provider-auth", False),
        (404, "provider-error", False),
        (408, "provider-error", True),
        (409, "provider-error", True),
        (425, "provider-error", True),
        (429, "provider-rate-limit", True),
        (500, "provider-error", True),
        (529, "provider-error", True),
        (None, "provider-error", True),
    ],
)
def test_codes_of_failing_endpoints(status: int | None, code: str, retryable: bool) -> None:
    error = ExecutorError.of_provider("no", status=status, retry_after_ms=7, details={"a": 1})
    assert (error.code, error.retryable, error.retry_after_ms) == (code, retryable, 7)
    assert error.details == ({"a": 1} if status is None else {"a": 1, "status": status})
