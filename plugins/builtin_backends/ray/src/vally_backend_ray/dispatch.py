"""Getting orders done: each on one worker after another until one of them answers, with its files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from vally import BackendError
from vally_backend_ray.codes import FAILED
from vally_backend_ray.crew import Crew, RemoteWorker, WorkerLost
from vally_backend_ray.messages import Delivery, FileFacts, HostPlan, Order, Reply
from vally_backend_ray.mirror import checked_name
from vally_backend_ray.outcome import RemoteOutcome
from vally_backend_ray.pickling import packed, unpacked
from vally_backend_ray.spool import EXPORT, RUN

T = TypeVar("T")
CANCEL_S = 20.0
"""How long a worker may take to give a trial up before it is killed."""


class Dispatch:
    """Places orders. `call` asks a worker and raises `WorkerLost`; `on_messages` gets what it told of a trial."""

    def __init__(
        self,
        crew: Crew,
        call: Callable[..., Awaitable[Any]],
        kill: Callable[[RemoteWorker], None],
        on_messages: Callable[[bytes], None],
        max_losses: int,
    ) -> None:
        self._crew = crew
        self._call = call
        self._kill = kill
        self._on_messages = on_messages
        self._max_losses = max_losses
        self._bundles: dict[str, list[Any]] = {}
        self._hosts: dict[str, HostPlan] = {}
        self._placed: dict[str, RemoteWorker] = {}
        self._spooled: dict[str, RemoteWorker] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self._stopped: set[str] = set()

    def add_bundle(self, key: str, pieces: list[Any]) -> None:
        """Remember the pieces of a bundle."""
        self._bundles[key] = pieces

    def add_host(self, plan: HostPlan) -> None:
        """Remember how a plugin host is made."""
        self._hosts[plan.key] = plan

    async def run(self, order: Order, method: str) -> Delivery:
        """Have an order done; `method` is what it is for a worker. Raises `BackendError` when nobody is left for it."""
        losses: list[str] = []
        nodes: set[str] = set()
        ended = self._ended[order.attempt] = asyncio.Event()
        try:
            while len(losses) <= self._max_losses:
                worker = await self._crew.acquire(nodes)
                try:
                    if order.attempt not in self._stopped:
                        await self._make_ready(worker, order)
                    # Files of a bundle may take long to arrive.
                    if order.attempt not in self._stopped:
                        return await self._done(worker, order, method, tuple(losses))
                except WorkerLost as lost:
                    losses.append(f"{worker.title} was lost: {lost}")
                    nodes.add(worker.node)
                    await self._crew.lose(worker)
                except BaseException:
                    await self._crew.release(worker)
                    raise
                else:
                    await self._crew.release(worker)
                    skipped = RemoteOutcome("skipped", skip_reason="cancelled")
                    return Delivery(body=packed(skipped), losses=tuple(losses))
            return Delivery(body=None, losses=tuple(losses))
        finally:
            ended.set()
            del self._ended[order.attempt]
            self._stopped.discard(order.attempt)

    async def _done(self, worker: RemoteWorker, order: Order, method: str, losses: tuple[str, ...]) -> Delivery:
        self._placed[order.attempt] = worker
        worker.attempts.add(order.attempt)
        try:
            reply, messages = await self._call(worker, method, order.attempt, order.host, order.bundle, order.body)
            if messages:
                self._on_messages(messages)
            body = await self._fetched(worker, order, reply)
        except BaseException:
            worker.attempts.discard(order.attempt)
            self._placed.pop(order.attempt, None)
            raise
        self._spooled[order.attempt] = worker
        return Delivery(body=body, files=reply.files, losses=losses)

    async def _make_ready(self, worker: RemoteWorker, order: Order) -> None:
        if order.bundle not in worker.bundles:
            await self._call(worker, "open_bundle", order.bundle, self._bundles[order.bundle])
            worker.bundles.add(order.bundle)
        if order.host not in worker.hosts:
            plan = self._hosts[order.host]
            pieces = [] if plan.bundle is None else self._bundles[plan.bundle]
            await self._call(worker, "open_host", packed(plan), pieces)
            worker.hosts.add(order.host)

    async def _fetched(self, worker: RemoteWorker, order: Order, reply: Reply) -> bytes:
        await self._fetch(worker, order.attempt, RUN, reply.files, order.directory / RUN)
        if reply.body is not None:
            return reply.body
        assert reply.body_file is not None
        await self._fetch(worker, order.attempt, "", [reply.body_file], order.directory)
        path = order.directory / reply.body_file.name
        return await asyncio.to_thread(path.read_bytes)

    async def _fetch(
        self, worker: RemoteWorker, attempt: str, part: str, files: Sequence[FileFacts], target: Path
    ) -> None:
        """Copy files piece by piece, so that none has to fit into memory. Raises `BackendError` and `OSError`."""
        for facts in files:
            path = target / checked_name(facts.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if facts.link is not None:
                path.symlink_to(facts.link)
                continue
            with path.open("wb") as file:
                while file.tell() < facts.size:
                    piece = await self._call(worker, "read", attempt, part, facts.name, file.tell())
                    if not piece:
                        raise BackendError(f"{worker.title}: '{facts.name}' is shorter than it was", code=FAILED)
                    await asyncio.to_thread(file.write, piece)
            path.chmod(facts.mode | 0o600)

    async def stop(self, attempt: str, reason: str) -> None:
        """Ask the agent of a trial to end; one that waits for a worker, or for its files there, is not begun."""
        if attempt in self._ended:
            self._stopped.add(attempt)
        # A worker that is gone has stopped it; that it was to stop counts for those that would be next.
        with suppress(WorkerLost):
            if attempt in self._placed:
                await self._call(self._placed[attempt], "stop", attempt, reason)

    async def cancel(self, attempt: str) -> None:
        """Give a trial up; a worker that does not is killed."""
        ended = self._ended.get(attempt)
        if ended is None:
            return
        self._stopped.add(attempt)
        worker = self._placed.get(attempt)
        if worker is None:
            return
        try:
            await asyncio.wait_for(self._call(worker, "cancel", attempt), CANCEL_S)
            await asyncio.wait_for(ended.wait(), CANCEL_S)
        except (TimeoutError, WorkerLost):
            self._kill(worker)

    async def ask(self, attempt: str, method: str, *arguments: Any) -> Any:
        """Ask the worker that has a trial; None when nobody has it any more."""
        worker = self._placed.get(attempt)
        if worker is None or not worker.alive:
            return None
        try:
            return await self._call(worker, method, attempt, *arguments)
        except WorkerLost:
            await self._crew.lose(worker)
            return None

    async def export(self, attempt: str, selection: bytes, directory: Path) -> Any:
        """Fetch files of a workspace into a directory; returns what the worker says of them, packed."""
        data = await self.ask(attempt, "export", selection)
        found = None if data is None else unpacked(data)
        if not isinstance(found, tuple):
            raise BackendError("workspace is not available") if found is None else found.error()
        exported, files = found
        await self._fetch(self._placed[attempt], attempt, EXPORT, files, directory)
        return exported

    async def clean_up(self, attempt: str) -> tuple[str, ...]:
        """Have the workspace of a trial removed and its slot freed; returns warnings."""
        warnings = await self.ask(attempt, "clean_up")
        worker = self._placed.pop(attempt, None)
        if worker is not None:
            worker.attempts.discard(attempt)
            await self._crew.release(worker)
        return tuple(warnings or ())

    async def forget(self, attempts: Sequence[str]) -> None:
        """Let workers remove results that are recorded."""
        found: dict[RemoteWorker, list[str]] = {}
        for attempt in attempts:
            worker = self._spooled.pop(attempt, None)
            if worker is not None and worker.alive:
                found.setdefault(worker, []).append(attempt)
        for worker, names in found.items():
            try:
                await self._call(worker, "forget", names)
            except WorkerLost:
                await self._crew.lose(worker)
