"""Placing orders on workers that may die: everything is answered once, from somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from event_loops import in_loop

from vally import BackendError, PluginSources
from vally_backend_ray.crew import Crew, RemoteWorker, WorkerLost
from vally_backend_ray.dispatch import Dispatch
from vally_backend_ray.link import Failure
from vally_backend_ray.messages import Delivery, FileFacts, HostPlan, Order, Reply
from vally_backend_ray.pickling import packed, unpacked


class FakeWorker:
    """Answers as a worker does; `deaths` orders kill it, `hold` keeps orders and `opening` files until they are set."""

    def __init__(self, number: int, node: str, deaths: int = 0) -> None:
        self.number = number
        self.node = node
        self.deaths = deaths
        self.files: dict[str, bytes] = {}
        self.body = b"done"
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.hold: asyncio.Event | None = None
        self.opening: asyncio.Event | None = None
        self.running = 0
        self.most = 0

    async def answer(self, method: str, arguments: tuple[Any, ...]) -> Any:
        self.calls.append((method, arguments))
        if method == "run":
            return await self._run()
        if method == "open_bundle" and self.opening is not None:
            await self.opening.wait()
        if method == "read":
            _, part, name, offset = arguments
            content = self.body if part == "" else self.files[name]
            return content[offset : offset + 3]
        if method == "clean_up":
            return ("left something",)
        return None

    async def _run(self) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.deaths:
            self.deaths -= 1
            raise WorkerLost("killed by a test")
        if self.hold is not None:
            await self.hold.wait()
        if self.deaths:
            raise WorkerLost("killed while it worked")
        self.running -= 1
        facts = tuple(FileFacts(name=name, size=len(data), mode=0o644) for name, data in self.files.items())
        if len(self.body) > 10:
            return Reply(
                body=None, files=facts, body_file=FileFacts(name="outcome", size=len(self.body), mode=0o600)
            ), b"m"
        return Reply(body=self.body, files=facts), b"m"

    def did(self, method: str) -> list[tuple[Any, ...]]:
        return [arguments for name, arguments in self.calls if name == method]


class Bench:
    """A dispatch with fake workers, made in the order of `plan`; later ones are healthy."""

    def __init__(self, tmp_path: Path, *plan: FakeWorker, slots: int = 2, max_losses: int = 2) -> None:
        self.tmp_path = tmp_path
        self.plan = list(plan)
        self.hired: list[FakeWorker] = []
        self.killed: list[int] = []
        self.lost: list[int] = []
        self.messages: list[bytes] = []
        self.failures = 0
        self.failure: Exception = BackendError("no room", code="ray-unavailable")
        self.crew = Crew(slots, self._hire, lambda worker: self.lost.append(worker.number))
        self.dispatch = Dispatch(self.crew, self._call, self._kill, self.messages.append, max_losses)
        self.dispatch.add_bundle("b", ["piece"])
        self.dispatch.add_host(HostPlan(key="h", sources=PluginSources()))

    async def _hire(self, number: int) -> tuple[Any, Mapping[str, Any]]:
        if self.failures:
            self.failures -= 1
            raise self.failure
        worker = self.plan.pop(0) if self.plan else FakeWorker(number, f"node{number}")
        self.hired.append(worker)
        return worker, {"node": worker.node, "pid": 100 + number}

    async def _call(self, worker: RemoteWorker, method: str, *arguments: Any) -> Any:
        if not worker.alive:
            raise WorkerLost("it is gone")
        await asyncio.sleep(0)
        return await worker.actor.answer(method, arguments)

    def _kill(self, worker: RemoteWorker) -> None:
        self.killed.append(worker.number)

    def order(self, name: str) -> Order:
        directory = self.tmp_path / name
        directory.mkdir(exist_ok=True)
        return Order(attempt=name, host="h", bundle="b", body=b"order", directory=directory)

    async def run(self, name: str) -> Delivery:
        return await self.dispatch.run(self.order(name), "run")


@in_loop
async def test_files_come_in_pieces_and_large_results_too(tmp_path: Path) -> None:
    worker = FakeWorker(1, "a")
    worker.files = {"deep/x.txt": b"0123456789", "empty": b""}
    worker.body = b"a result of more than ten bytes"
    bench = Bench(tmp_path, worker)
    await bench.crew.open(1)
    delivery = await bench.run("one")
    assert delivery.body == worker.body
    assert (tmp_path / "one/run/deep/x.txt").read_bytes() == b"0123456789"
    assert (tmp_path / "one/run/empty").read_bytes() == b""
    assert len(worker.did("read")) > 10
    assert bench.messages == [b"m"]


@in_loop
async def test_bundles_and_hosts_are_opened_once_per_worker(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.crew.open(1)
    for name in ("one", "two"):
        await bench.run(name)
    (worker,) = bench.hired
    assert worker.did("open_bundle") == [("b", ["piece"])]
    assert len(worker.did("open_host")) == 1


@in_loop
async def test_no_worker_has_more_than_its_slots_and_all_are_used(tmp_path: Path) -> None:
    workers = [FakeWorker(1, "a"), FakeWorker(2, "b")]
    for worker in workers:
        worker.hold = asyncio.Event()
    bench = Bench(tmp_path, *workers, slots=2)
    await bench.crew.open(2)
    running = [asyncio.create_task(bench.run(str(number))) for number in range(7)]
    while sum(worker.running for worker in workers) < 4:
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert [worker.running for worker in workers] == [2, 2]
    for worker in workers:
        assert worker.hold is not None
        worker.hold.set()
    cleaned = 0
    while cleaned < 7:
        for number in range(7):
            if running[number].done() and str(number) in bench.dispatch._placed:
                assert await bench.dispatch.clean_up(str(number)) == ("left something",)
                cleaned += 1
        await asyncio.sleep(0)
    assert [worker.most for worker in workers] == [2, 2]


@in_loop
async def test_a_lost_order_is_done_elsewhere_and_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeWorker(1, "a", deaths=1), FakeWorker(2, "a"), FakeWorker(3, "b"))
    await bench.crew.open(1)
    while len(bench.crew.workers) < 1:
        await asyncio.sleep(0)
    delivery = await bench.run("one")
    assert delivery.body == b"done"
    (loss,) = delivery.losses
    assert loss == "worker 1 (pid 101 on a) was lost: killed by a test"
    assert bench.lost == [1]


@in_loop
async def test_another_node_is_preferred_after_a_loss(tmp_path: Path) -> None:
    first, same, other = FakeWorker(1, "a", deaths=1), FakeWorker(2, "a"), FakeWorker(3, "b")
    bench = Bench(tmp_path, first, same, other)
    await bench.crew.open(3)
    while len(bench.crew.workers) < 3:
        await asyncio.sleep(0)
    await bench.run("one")
    assert (len(same.did("run")), len(other.did("run"))) == (0, 1)


@in_loop
async def test_after_the_last_allowed_loss_nothing_is_tried(tmp_path: Path) -> None:
    bench = Bench(tmp_path, *(FakeWorker(number, "a", deaths=1) for number in range(1, 6)), max_losses=2)
    await bench.crew.open(1)
    delivery = await bench.run("one")
    assert delivery.body is None
    assert len(delivery.losses) == 3
    assert len(bench.lost) == 3


@in_loop
async def test_other_orders_of_a_lost_worker_are_done_once_each(tmp_path: Path) -> None:
    sick = FakeWorker(1, "a")
    sick.hold = asyncio.Event()
    bench = Bench(tmp_path, sick, slots=4)
    await bench.crew.open(1)
    running = [asyncio.create_task(bench.run(str(number))) for number in range(4)]
    while sick.running < 4:
        await asyncio.sleep(0)

    async def dies(method: str, arguments: tuple[Any, ...]) -> Any:
        raise WorkerLost("its node is gone")

    sick.answer = dies  # type: ignore[method-assign]  # what a dead worker says from now on
    (remote,) = bench.crew.workers
    await bench.crew.lose(remote)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    again = [await bench.run(f"again-{number}") for number in range(2)]
    assert all(delivery.body == b"done" for delivery in again)
    assert bench.lost == [1]


@in_loop
async def test_stopping_an_order_that_waits_lets_it_be_skipped(tmp_path: Path) -> None:
    busy = FakeWorker(1, "a")
    busy.hold = asyncio.Event()
    bench = Bench(tmp_path, busy, slots=1)
    await bench.crew.open(1)
    first = asyncio.create_task(bench.run("first"))
    while not busy.running:
        await asyncio.sleep(0)
    waiting = asyncio.create_task(bench.run("waiting"))
    for _ in range(10):
        await asyncio.sleep(0)
    await bench.dispatch.stop("first", "cancelled")
    await bench.dispatch.stop("waiting", "cancelled")
    assert busy.did("stop") == [("first", "cancelled")]
    busy.hold.set()
    await first
    await bench.dispatch.clean_up("first")
    delivery = await waiting
    assert delivery.body is not None
    assert (unpacked(delivery.body).status, unpacked(delivery.body).skip_reason) == ("skipped", "cancelled")
    assert len(busy.did("run")) == 1


@in_loop
async def test_a_worker_that_is_lost_while_its_order_is_stopped_has_no_successor(tmp_path: Path) -> None:
    sick = FakeWorker(1, "a")
    sick.hold = asyncio.Event()
    bench = Bench(tmp_path, sick)
    await bench.crew.open(1)
    running = asyncio.create_task(bench.run("one"))
    while not sick.running:
        await asyncio.sleep(0)
    healthy = sick.answer

    async def dies(method: str, arguments: tuple[Any, ...]) -> Any:
        if method == "stop":
            raise WorkerLost("killed by a test")
        return await healthy(method, arguments)

    sick.answer = dies  # type: ignore[method-assign]  # the worker is killed at this very moment
    await bench.dispatch.stop("one", "cancelled")
    sick.deaths = 1
    sick.hold.set()
    delivery = await running
    assert delivery.body is not None
    assert unpacked(delivery.body).status == "skipped"
    assert [worker.did("run") for worker in bench.hired[1:]] == [[]]


@pytest.mark.parametrize("word", ["stop", "cancel"])
@in_loop
async def test_an_order_that_ends_while_its_files_arrive_is_not_begun(word: str, tmp_path: Path) -> None:
    worker = FakeWorker(1, "a")
    worker.opening = asyncio.Event()
    bench = Bench(tmp_path, worker, slots=1)
    await bench.crew.open(1)
    running = asyncio.create_task(bench.run("one"))
    while not worker.did("open_bundle"):
        await asyncio.sleep(0)
    await (bench.dispatch.cancel("one") if word == "cancel" else bench.dispatch.stop("one", "cancelled"))
    worker.opening.set()
    delivery = await running
    assert delivery.body is not None
    assert unpacked(delivery.body).status == "skipped"
    assert worker.did("run") == []
    assert (await bench.run("two")).body == b"done"


@in_loop
async def test_results_are_forgotten_only_when_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.crew.open(1)
    await bench.run("one")
    await bench.dispatch.clean_up("one")
    (worker,) = bench.hired
    assert worker.did("forget") == []
    await bench.dispatch.forget(["one", "never-seen"])
    assert worker.did("forget") == [(["one"],)]


@in_loop
async def test_without_any_worker_the_reason_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.failures = 100
    with pytest.raises(BackendError, match="no room"):
        await bench.crew.open(2)


@in_loop
async def test_a_fault_of_hiring_lets_nobody_wait_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.failures, bench.failure = 100, ValueError("a fault")
    with pytest.raises(BackendError, match="ValueError: a fault"):
        await bench.crew.open(2)


@in_loop
async def test_orders_fail_when_the_last_worker_cannot_be_replaced(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeWorker(1, "a", deaths=1))
    await bench.crew.open(1)
    bench.failures = 100
    with pytest.raises(BackendError, match="no room"):
        await bench.run("one")


@in_loop
async def test_an_export_of_a_workspace_that_is_gone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.crew.open(1)
    await bench.run("one")

    async def refuses(method: str, arguments: tuple[Any, ...]) -> Any:
        return packed(Failure("workspace is not available"))

    bench.hired[0].answer = refuses  # type: ignore[method-assign]  # one answer for everything
    for attempt in ("one", "unknown"):
        with pytest.raises(BackendError, match="workspace is not available"):
            await bench.dispatch.export(attempt, b"", tmp_path)
