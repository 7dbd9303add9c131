"""Items for workers: plan order, but never more of one model at a time than is allowed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally.run.item_queue import LOOK_AHEAD, ItemQueue


def items(models: str) -> list[Any]:
    return [SimpleNamespace(model=model, number=number) for number, model in enumerate(models)]


async def run(queue: ItemQueue, workers: int) -> tuple[list[int], Counter[str]]:
    """Work everything off; returns the order of starts and the most that ran at once of each model."""
    order: list[int] = []
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def work() -> None:
        while (item := await queue.take()) is not None:
            found: Any = item
            order.append(found.number)
            running[found.model] += 1
            most[found.model] = max(most[found.model], running[found.model])
            await anyio.sleep(0)
            running[found.model] -= 1
            queue.done(item)

    async with anyio.create_task_group() as group:
        for _ in range(workers):
            group.start_soon(work)
    return order, most


@pytest.mark.parametrize("workers", [1, 3])
def test_without_a_limit_items_come_in_plan_order(workers: int) -> None:
    order, _ = anyio.run(run, ItemQueue(iter(items("aabba"))), workers)
    assert order == [0, 1, 2, 3, 4]


def test_a_busy_model_lets_others_pass() -> None:
    order, most = anyio.run(run, ItemQueue(iter(items("aaab")), 1), 2)
    assert order[:2] == [0, 3]
    assert most == {"a": 1, "b": 1}


@given(st.text("abc", max_size=40), st.integers(1, 4), st.integers(1, 6))
def test_every_item_runs_once_within_the_limit(models: str, limit: int, workers: int) -> None:
    order, most = anyio.run(run, ItemQueue(iter(items(models)), limit), workers)
    assert sorted(order) == list(range(len(models)))
    assert all(count <= min(limit, workers) for count in most.values())


def test_what_nobody_took_is_left() -> None:
    queue = ItemQueue(iter(items("aab")), 1)

    async def take_two() -> list[Any]:
        return [await queue.take(), await queue.take()]

    first, second = anyio.run(take_two)
    assert (first.number, second.number) == (0, 2)
    rest: list[Any] = list(queue.rest())
    assert [item.number for item in rest] == [1]


def test_only_so_many_items_are_passed_over() -> None:
    source = iter(items("a" * (LOOK_AHEAD * 2)))
    queue = ItemQueue(source, 1)

    async def take_one() -> None:
        await queue.take()
        with anyio.move_on_after(0.01):
            await queue.take()

    anyio.run(take_one)
    assert len(list(source)) == LOOK_AHEAD - 1
