"""A worker: an asynchronous actor on a node of the cluster. Ray makes it, the bridge calls it."""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import (
    BackendError,
    GradeOutcome,
    Guardian,
    LocalProcessRunner,
    Redactor,
    RunContext,
    VallyError,
    cache_directory,
    own_environment,
)
from vally_backend_local import remove_tree, temporary_directory
from vally_backend_ray.codes import MISMATCH
from vally_backend_ray.hosts import make_host, version_problem
from vally_backend_ray.messages import FileFacts, GradeOrder, HostPlan, Reply, TrialOrder, WorkerSettings
from vally_backend_ray.outbox import Outbox
from vally_backend_ray.outcome import RemoteOutcome
from vally_backend_ray.pickling import packed, unpacked
from vally_backend_ray.remote_judge import RemoteJudge
from vally_backend_ray.serving import failure_of
from vally_backend_ray.spool import EXPORT, Spool, list_files
from vally_backend_ray.unpacking import BundleStore
from vally_backend_ray.worker_trials import Desk, WorkerHost, WorkerTrial, grade

RAY_PREFIX = "RAY_"
END_S = 15.0
"""How long trials that are cancelled at the end may take."""


class Worker:
    """Owns the plugin hosts, executors and the backend that runs its trials. All methods but `poll` return soon."""

    def __init__(self, settings: bytes) -> None:
        self._settings: WorkerSettings = unpacked(settings)
        self._hosts: dict[str, WorkerHost] = {}
        self._roots: dict[str, Path] = {}
        self._trials: dict[str, WorkerTrial] = {}
        self._judges: dict[str, RemoteJudge] = {}
        self._tasks: dict[str, asyncio.Task[bytes]] = {}
        self._early_stops: dict[str, str] = {}
        self._guardian = Guardian()
        self._outbox: Outbox
        self._bundles: BundleStore
        self._desk: Desk
        self._spool: Spool
        self._scratch: Path
        self._watch: LocalProcessRunner

    async def start(self, plan: bytes, pieces: Sequence[Any]) -> bytes:
        """Compare versions and make the inner backend ready; returns a packed failure, or what the worker is."""
        try:
            problem = version_problem(self._settings.versions)
            if problem is not None:
                raise BackendError(f"{problem} (node {os.uname().nodename})", code=MISMATCH)
            await self._start(unpacked(plan), pieces)
        except Exception as error:
            return packed(failure_of(error))
        return packed({"pid": os.getpid(), "node": os.uname().nodename})

    async def _start(self, plan: HostPlan, pieces: Sequence[Any]) -> None:
        settings = self._settings
        environment = settings.environment
        if environment is None:
            own = own_environment()
            environment = {name: value for name, value in own.items() if not name.startswith(RAY_PREFIX)}
        process_env = {**environment, **settings.extra}
        cache_dir = settings.cache_dir or cache_directory(process_env, Path.cwd())
        self._outbox = Outbox()
        self._bundles = BundleStore(cache_dir)
        self._make_scratch(temporary_directory(process_env))
        self._context = RunContext(
            run_id=settings.run_id,
            cache_dir=cache_dir,
            project_root=settings.project_root,
            process_env=process_env,
            items=settings.items,
            workers=settings.slots,
            on_warning=lambda text: self._outbox.put_threadsafe(("warning", "", text)),
        )
        await self.open_host(packed(plan), pieces)
        host = self._hosts[plan.key].host
        record = host.require("backend", settings.inner)
        backend = host.create(record)
        await backend.prepare(settings.inner_args, self._context)
        own_secrets = None if settings.environment is not None else Redactor(process_env)
        self._desk = Desk(backend, f"ray/{settings.inner}", process_env, own_secrets, self._outbox)

    def _make_scratch(self, temporary: Path) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="vally-ray-", dir=temporary))
        self._spool = Spool(self._scratch)
        name = f"ray-worker-{uuid.uuid4()}"
        self._watch = LocalProcessRunner(name, {}, removable_dirs=(self._scratch,), guardian=self._guardian)
        # Nothing is started by it: what counts is that the directory goes when this process is killed.
        self._watch.mark("VALLY_RAY_WORKER", name)

    async def open_bundle(self, key: str, pieces: Sequence[Any]) -> None:
        """Have the files of a bundle on this node. Raises `OSError`."""

        async def fetched() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield await piece

        self._roots[key] = await self._bundles.root(key, fetched())

    async def open_host(self, plan: bytes, pieces: Sequence[Any]) -> None:
        """Make a plugin host; `pieces` are those of the bundle of its local plugins."""
        wanted: HostPlan = unpacked(plan)
        if wanted.key in self._hosts:
            return
        if wanted.bundle is not None:
            await self.open_bundle(wanted.bundle, pieces)
        root = None if wanted.bundle is None else self._roots[wanted.bundle]
        self._hosts[wanted.key] = WorkerHost(make_host(wanted, root), self._context, {})

    async def run(self, attempt: str, host: str, bundle: str, body: bytes) -> tuple[Reply, bytes]:
        """Run a trial to its outcome, and return it with what was told of it and not yet taken."""
        order: TrialOrder = unpacked(body)
        place = self._spool.place(attempt)
        trial = WorkerTrial(attempt, order, self._hosts[host], self._roots[bundle], place, self._desk)
        self._trials[attempt] = trial
        if trial.judge is not None:
            self._judges[attempt] = trial.judge
        if attempt in self._early_stops:
            trial.stop.set(self._early_stops.pop(attempt))
        data = await self._supervised(attempt, trial.run())
        if data is None:
            data = packed(RemoteOutcome("skipped", skip_reason="cancelled", backend_name=self._desk.backend_name))
        reply = await anyio.to_thread.run_sync(self._spool.reply, attempt, data)
        return reply, packed(self._outbox.take_of(attempt))

    async def grade(self, attempt: str, host: str, bundle: str, body: bytes) -> tuple[Reply, bytes]:
        """Grade a recorded trajectory."""
        order: GradeOrder = unpacked(body)
        judge = None if order.judge is None else RemoteJudge(attempt, order.judge, self._outbox)
        if judge is not None:
            self._judges[attempt] = judge
        work = grade(order, self._hosts[host], self._roots[bundle], judge, self._desk)
        data = await self._supervised(attempt, work)
        self._judges.pop(attempt, None)
        return Reply(body=data or packed(GradeOutcome(grade=None))), b""

    async def _supervised(self, attempt: str, work: Any) -> bytes | None:
        """What the work returns; None when it was cancelled, which ends its processes."""
        task: asyncio.Task[bytes] = asyncio.create_task(work)
        self._tasks[attempt] = task
        try:
            await asyncio.wait([task])
        finally:
            del self._tasks[attempt]
        return None if task.cancelled() else task.result()

    async def poll(self) -> bytes:
        """Wait for something to tell, and tell it."""
        return packed(await self._outbox.take())

    async def stop(self, attempt: str, reason: str) -> None:
        """Ask the agent of a trial to end."""
        if attempt in self._trials:
            self._trials[attempt].stop.set(reason)
        else:
            # Large arguments of `run` may take longer than this call.
            self._early_stops[attempt] = reason

    async def cancel(self, attempt: str) -> None:
        """Give a trial up."""
        if attempt in self._tasks:
            self._tasks[attempt].cancel()

    async def answer(self, attempt: str, call: str, reply: bytes, failure: Mapping[str, Any] | None) -> None:
        """Hand the answer of a judge to the grader that waits for it."""
        if attempt in self._judges:
            self._judges[attempt].answer(call, unpacked(reply), failure)

    async def check(self, attempt: str, call: str, arguments: Mapping[str, object]) -> str | None:
        """Let the grader look at the arguments of an answer."""
        judge = self._judges.get(attempt)
        return None if judge is None else judge.check(call, arguments)

    async def read(self, attempt: str, part: str, name: str, offset: int) -> bytes:
        """A piece of a file that waits here."""
        return await anyio.to_thread.run_sync(self._spool.read, attempt, part, name, offset)

    async def export(self, attempt: str, selection: bytes) -> bytes:
        """Copy files of a workspace to where they can be read; returns what was copied and the facts of the files."""
        trial = self._trials.get(attempt)
        target = self._spool.place(attempt) / EXPORT
        try:
            if trial is None:
                raise BackendError("workspace is not available")
            exported = await trial.export(unpacked(selection), target)
        except VallyError as error:
            return packed(failure_of(error))
        files: list[FileFacts] = await anyio.to_thread.run_sync(list_files, target)
        return packed((exported, files))

    async def clean_up(self, attempt: str) -> tuple[str, ...]:
        """Remove the workspace of a trial; returns warnings."""
        trial = self._trials.pop(attempt, None)
        self._judges.pop(attempt, None)
        return () if trial is None else await trial.clean_up()

    async def forget(self, attempts: Sequence[str]) -> None:
        """The results of these attempts are on the driver's disk."""
        for attempt in attempts:
            await anyio.to_thread.run_sync(self._spool.forget, attempt)

    async def close(self) -> tuple[str, ...]:
        """End everything; returns warnings."""
        if not hasattr(self, "_desk"):
            return ()
        warnings: list[str] = []
        for task in list(self._tasks.values()):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=END_S)
        for attempt in list(self._trials):
            warnings += await self.clean_up(attempt)
        for host in self._hosts.values():
            warnings += await _quietly(host.shutdown())
        warnings += await _quietly(self._desk.backend.shutdown())
        self._outbox.close()
        await anyio.to_thread.run_sync(remove_tree, self._scratch)
        self._watch.close()
        await anyio.to_thread.run_sync(self._guardian.shutdown)
        return tuple(warnings)


async def _quietly(work: Any) -> list[str]:
    try:
        await work
    except Exception as error:
        return [f"a worker did not end cleanly: {failure_of(error).message}"]
    return []
