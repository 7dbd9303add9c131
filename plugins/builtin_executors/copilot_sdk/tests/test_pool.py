"""Which sessions share a client, and when clients start and end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError
from vally_executor_copilot_sdk import pool as pools
from vally_executor_copilot_sdk.pool import ClientPool

pytestmark = pytest.mark.anyio


class Client:
    """Stands for a process; `problem` is raised when it starts."""

    made: list[Client]
    problem: ExecutorError | None = None

    def __init__(self, settings: Any) -> None:
        self.failure: ExecutorError | None = None
        self.settings = settings
        self.started = 0
        self.closed = 0
        self.gate = anyio.Event()
        self.made.append(self)

    async def start(self) -> None:
        self.started += 1
        await anyio.sleep(0)
        if self.problem is not None:
            self.failure = self.problem
            raise self.problem

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    clients: list[Client] = []
    monkeypatch.setattr(pools, "RuntimeClient", type("ClientOfTest", (Client,), {"made": clients}))
    return clients


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[], Any]:
    return lambda: tmp_path


async def test_equal_keys_share_and_others_do_not(made: list[Client], settings: Any) -> None:
    pool = ClientPool()
    async with pool.lease("a", settings, sessions=2) as one, pool.lease("a", settings, sessions=2) as two:
        assert one is two
        async with pool.lease("a", settings, sessions=2) as third, pool.lease("b", settings) as other:
            assert third is not one
            assert other not in (one, third)
    assert [client.started for client in made] == [1, 1, 1]
    assert [client.closed for client in made] == [0, 0, 0]
    async with pool.lease("a", settings, sessions=2) as again:
        assert again in made[:2]
    await pool.shutdown()
    await pool.shutdown()
    assert [client.closed for client in made] == [1, 1, 1]
    assert pool.clients == ()


async def test_a_client_without_key_ends_with_its_session(made: list[Client], settings: Any) -> None:
    pool = ClientPool()
    async with pool.lease(None, settings) as one, pool.lease(None, settings) as two:
        assert one is not two
    assert [client.closed for client in made] == [1, 1]


async def test_all_wait_for_one_start(made: list[Client], settings: Any) -> None:
    pool = ClientPool()
    used: list[Any] = []

    async def use() -> None:
        async with pool.lease("a", settings, sessions=8) as client:
            used.append(client)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(use)
    assert len(made) == 1
    assert used == made * 8
    assert made[0].started == 1


async def test_a_cancelled_waiter_does_not_end_the_start(made: list[Client], settings: Any) -> None:
    pool = ClientPool()

    async def use(scope: anyio.CancelScope) -> None:
        with scope:
            async with pool.lease("a", settings, sessions=8):
                pass

    cancelled, other = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use, cancelled)
        tasks.start_soon(use, other)
        cancelled.cancel()
    assert len(made) == 1
    assert made[0].closed == 0


async def test_a_client_that_does_not_start_is_tried_anew(
    made: list[Client], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ClientPool()
    monkeypatch.setattr(Client, "problem", ExecutorError("no", code="agent-start-failed"))
    with pytest.raises(ExecutorError, match="no"):
        async with pool.lease("a", settings):
            pass
    assert pool.clients == ()
    monkeypatch.setattr(Client, "problem", None)
    async with pool.lease("a", settings) as client:
        assert client is made[1]


async def test_a_failed_client_is_ended_when_its_last_session_ends(made: list[Client], settings: Any) -> None:
    pool = ClientPool()
    async with pool.lease("a", settings, sessions=2):
        async with pool.lease("a", settings, sessions=2):
            made[0].failure = ExecutorError("crash", code="agent-crashed")
        assert made[0].closed == 0
        async with pool.lease("a", settings, sessions=2) as other:
            assert other is made[1]
    assert [client.closed for client in made] == [1, 0]


async def test_a_client_that_served_many_is_replaced(
    made: list[Client], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MOST_SESSIONS_SERVED", 3)
    pool = ClientPool()
    for _ in range(7):
        async with pool.lease("a", settings):
            pass
    assert [client.closed for client in made] == [1, 1, 0]


async def test_nothing_starts_after_the_end(made: list[Client], settings: Any) -> None:
    pool = ClientPool()
    await pool.shutdown()
    with pytest.raises(ExecutorError, match="was shut down"):
        async with pool.lease("a", settings):
            pass
    assert not made
