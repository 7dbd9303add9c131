"""The process between vally and Ray.

Ray's driver library keeps to its own rules about environment variables, signals, logging and the end of a process
when a cluster is gone. Here they concern nobody else. Started as `python -m vally_backend_ray.bridge <socket>`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vally_backend_ray.cluster import Cluster
from vally_backend_ray.crew import Crew, RemoteWorker, WorkerLost
from vally_backend_ray.dispatch import Dispatch
from vally_backend_ray.messages import ClusterSettings, Delivery, HostPlan, Order
from vally_backend_ray.pickling import packed
from vally_backend_ray.serving import Server

CLOSE_S = 25.0


class Bridge:
    """What the driver can ask for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._cluster: Cluster
        self._crew: Crew
        self._dispatch: Dispatch
        self._polls: set[asyncio.Task[None]] = set()
        self._pieces: dict[str, list[Any]] = {}
        self._opened = False

    async def connect(self, settings: ClusterSettings) -> Mapping[str, str]:
        """Start the cluster or connect to it; returns what records say of it."""
        self._settings = settings
        self._cluster = Cluster(settings)
        await asyncio.to_thread(self._cluster.open)
        self._opened = True
        self._crew = Crew(settings.slots, self._hire, self._on_loss)
        self._dispatch = Dispatch(self._crew, self._call, self._kill, self._tell, settings.max_losses)
        return self._cluster.facts()

    async def start(self) -> Mapping[str, Any]:
        """Start workers; returns when the first one is ready."""
        await self._crew.open(self._settings.workers)
        return {"workers": len(self._crew.workers)}

    async def add_bundle(self, key: str, archive: Path) -> None:
        """Put a bundle into the object store."""
        if key not in self._pieces:
            self._pieces[key] = await asyncio.to_thread(self._cluster.put, archive)
            self._dispatch.add_bundle(key, self._pieces[key])

    async def add_host(self, plan: HostPlan) -> None:
        """Learn how a plugin host is made."""
        self._dispatch.add_host(plan)

    async def run(self, order: Order) -> Delivery:
        """Have a trial run."""
        return await self._dispatch.run(order, "run")

    async def grade(self, order: Order) -> Delivery:
        """Have a recorded trajectory graded."""
        try:
            return await self._dispatch.run(order, "grade")
        finally:
            await self._dispatch.clean_up(order.attempt)
            await self._dispatch.forget([order.attempt])

    async def stop(self, attempt: str, reason: str) -> None:
        """Ask the agent of a trial to end."""
        await self._dispatch.stop(attempt, reason)

    async def cancel(self, attempt: str) -> None:
        """Give a trial up."""
        await self._dispatch.cancel(attempt)

    async def answer(self, attempt: str, call: str, reply: bytes, failure: Mapping[str, Any] | None) -> None:
        """Hand over the answer of a judge."""
        await self._dispatch.ask(attempt, "answer", call, reply, failure)

    async def check(self, attempt: str, call: str, arguments: Mapping[str, object]) -> str | None:
        """Let a grader look at the arguments of an answer."""
        problem: str | None = await self._dispatch.ask(attempt, "check", call, arguments)
        return problem

    async def export(self, attempt: str, selection: bytes, directory: Path) -> Any:
        """Fetch files of a workspace."""
        return await self._dispatch.export(attempt, selection, directory)

    async def clean_up(self, attempt: str) -> tuple[str, ...]:
        """Have the workspace of a trial removed."""
        return await self._dispatch.clean_up(attempt)

    async def forget(self, attempts: Sequence[str]) -> None:
        """Let workers remove results that are recorded."""
        await self._dispatch.forget(attempts)

    async def close(self) -> tuple[str, ...]:
        """End the workers and leave the cluster; returns warnings."""
        if not self._opened:
            return ()
        self._opened = False
        await self._crew.close()
        ended = await asyncio.gather(*(self._ended(worker) for worker in self._crew.workers))
        for task in self._polls:
            task.cancel()
        await asyncio.to_thread(self._cluster.close)
        return tuple(line for lines in ended for line in lines)

    async def _ended(self, worker: RemoteWorker) -> Sequence[str]:
        try:
            return tuple(await asyncio.wait_for(self._call(worker, "close"), CLOSE_S))
        except TimeoutError:
            return (f"{worker.title} did not end within {CLOSE_S:g} s and was killed",)
        except Exception as error:
            return (f"{worker.title} did not end cleanly: {error}",)
        finally:
            self._kill(worker)

    async def _hire(self, number: int) -> tuple[Any, Mapping[str, Any]]:
        plan = self._settings.host
        pieces = [] if plan.bundle is None else self._pieces[plan.bundle]
        actor, facts = await self._cluster.hire(pieces, packed(plan), lambda: bool(self._crew.workers))
        task = asyncio.create_task(self._poll(actor))
        self._polls.add(task)
        task.add_done_callback(self._polls.discard)
        return actor, facts

    async def _poll(self, actor: Any) -> None:
        while True:
            try:
                self._tell(await self._cluster.call(actor, "poll"))
            except WorkerLost:
                worker = next((one for one in self._crew.workers if one.actor is actor), None)
                if worker is not None and self._opened:
                    await self._crew.lose(worker)
                return

    def _tell(self, messages: bytes) -> None:
        self._server.note("messages", messages)

    def _on_loss(self, worker: RemoteWorker) -> None:
        self._server.note("lost", sorted(worker.attempts))
        self._kill(worker)

    async def _call(self, worker: RemoteWorker, method: str, *arguments: Any) -> Any:
        if not worker.alive:
            raise WorkerLost("it is gone")
        return await self._cluster.call(worker.actor, method, *arguments)

    def _kill(self, worker: RemoteWorker) -> None:
        self._cluster.kill(worker.actor)

    def methods(self) -> dict[str, Any]:
        """What can be asked for, by name."""
        asked = (
            *(self.connect, self.start, self.add_bundle, self.add_host, self.run, self.grade, self.stop, self.cancel),
            *(self.answer, self.check, self.export, self.clean_up, self.forget, self.close),
        )
        return {method.__name__: method for method in asked}


async def _main(path: str) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    server = Server(reader, writer)
    bridge = Bridge(server)
    try:
        await server.serve(bridge.methods())
    finally:
        await bridge.close()


if __name__ == "__main__":
    # Whatever Ray prints is for the log that vally keeps of this process.
    os.dup2(2, 1)
    asyncio.run(_main(sys.argv[1]))
