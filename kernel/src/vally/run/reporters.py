"""Feeding reporters: each has its own queue and task, so that none can delay, lose or change a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.run.calling import call_tamed, invoke
from vally.run.report_stream import reporting

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.records import ReporterSpec

QUEUE_LIMIT = 1_000
COMPLETE_TIMEOUT_S = 60.0
"""How long a reporter may take for `on_run_complete`, and the run waits for one that handles no event any more."""

GATHER_S = 0.05
"""How long events are gathered before they are delivered: one hop to a thread then serves many short trials."""
NOTICE_S = 1.0
"""How long a command's own reporter may take for the end of a run before its name is shown."""


@dataclass(slots=True)
class _Call:
    method: str
    event: Any


class ReporterFeed:
    """One reporter with its queue; after an exception it gets nothing more."""

    def __init__(
        self,
        record: ReporterSpec,
        instance: Any,
        on_failure: Callable[[str, Exception], None],
    ) -> None:
        self.record = record
        self._instance = instance
        self.on_failure = on_failure
        self._calls: list[_Call] = []
        self._wake = anyio.Event()
        self._room = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._closed = False
        self._handled = 0
        self._methods = frozenset(name for name in dir(instance) if name.startswith("on_"))
        self.disabled = False

    async def put(self, method: str, event: Any) -> None:
        """Queue one event, waiting while the queue is full."""
        while self.wants(method) and len(self._calls) >= QUEUE_LIMIT:
            if self._room.is_set():
                self._room = anyio.Event()
            await self._while_it_works(self._room)
        self.put_nowait(method, event)

    async def _while_it_works(self, done: anyio.Event) -> None:
        """Wait for an event, or disable the reporter when it handles nothing for too long."""
        while not done.is_set() and not self.disabled:
            handled = self._handled
            with anyio.move_on_after(COMPLETE_TIMEOUT_S):
                await done.wait()
                return
            if handled == self._handled:
                self.disable(TimeoutError(f"one event took longer than {COMPLETE_TIMEOUT_S:.0f}s"))

    def put_nowait(self, method: str, event: Any) -> None:
        """Queue one event, or drop it when the queue is full."""
        if not self.wants(method) or len(self._calls) >= QUEUE_LIMIT:
            return
        self._calls.append(_Call(method, event))
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()

    def wants(self, method: str) -> bool:
        """Whether it still handles such events."""
        return not self.disabled and method in self._methods

    async def run(self) -> None:
        """Deliver events until closed; one thread hop serves all that are waiting."""
        with reporting():
            await self._run()

    async def _run(self) -> None:
        while True:
            if not self._calls:
                self._idle.set()
                if self._closed:
                    return
                self._wake = anyio.Event()
                await self._wake.wait()
                continue
            if not self._closed:
                await anyio.sleep(GATHER_S)
            batch, self._calls = self._calls, []
            self._room.set()
            await self._deliver(batch)

    async def _deliver(self, batch: Sequence[_Call]) -> None:
        if self.disabled:
            return
        try:
            if self.record.blocking:
                await anyio.to_thread.run_sync(self._deliver_sync, batch, abandon_on_cancel=True)
            else:
                self._deliver_sync(batch)
            for call in batch:
                if call.event is not None and not self.disabled:
                    await invoke(getattr(self._instance, call.method), call.event)
                    self._handled += 1
        except Exception as error:
            self.disable(error)

    def _deliver_sync(self, batch: Sequence[_Call]) -> None:
        # Async methods are left to the event loop: their calls keep their event, the others lose it.
        import inspect

        for call in batch:
            if self.disabled:
                return
            method = getattr(self._instance, call.method)
            if inspect.iscoroutinefunction(method):
                return
            call_tamed(method, call.event)
            call.event = None
            self._handled += 1

    def disable(self, error: Exception) -> None:
        """Give it nothing more for the rest of the run."""
        if not self.disabled:
            self.disabled = True
            self._room.set()
            self.on_failure(self.record.name, error)

    async def drain(self) -> None:
        """Wait until everything queued so far was delivered."""
        await self._while_it_works(self._idle)

    def close(self) -> None:
        """Let `run` end once the queue is empty."""
        self._closed = True
        self._wake.set()

    async def complete(self, event: Any, on_wait: Callable[[str], None]) -> Mapping[str, Path]:
        """Call `on_run_complete` within its limit; returns the files it names. `on_wait` tells who is waited for."""
        method = getattr(self._instance, "on_run_complete", None)
        if self.disabled or method is None:
            return {}
        if not self.record.notice_s:
            on_wait(self.record.name)
        async with anyio.create_task_group() as group:
            if self.record.notice_s:
                group.start_soon(self._notice, on_wait)
            artifacts = await self._complete(method, event)
            group.cancel_scope.cancel()
        return artifacts

    async def _notice(self, on_wait: Callable[[str], None]) -> None:
        await anyio.sleep(self.record.notice_s)
        on_wait(self.record.name)

    async def _complete(self, method: Callable[..., Any], event: Any) -> Mapping[str, Path]:
        try:
            with reporting(), anyio.fail_after(COMPLETE_TIMEOUT_S):
                named = await invoke(method, event, blocking=self.record.blocking)
            return _named_files(named)
        except TimeoutError:
            self.disable(TimeoutError(f"took longer than {COMPLETE_TIMEOUT_S:.0f}s"))
        except Exception as error:
            self.disable(error)
        return {}


def _named_files(named: object) -> Mapping[str, Path]:
    if named is None:
        return {}
    if not isinstance(named, Mapping):
        raise TypeError(f"on_run_complete returned {type(named).__name__}, not a mapping from label to path")
    for label, path in named.items():
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"on_run_complete returned {type(path).__name__} for '{label}', not a path")
    return {str(label): Path(path) for label, path in named.items()}


def active_reporters(
    host: PluginHost, flags: Mapping[str, Any], on_failure: Callable[[str, Exception], None], *, kind: str = "eval"
) -> list[ReporterFeed]:
    """Make the reporters of a kind of run, in call order: by `order`, then in the order in which they were loaded.

    A reporter whose record names an option is active only when `flags` has a true value for it. One that cannot be
    made is reported through `on_failure` and left out.
    """
    from vally.records import ReporterSpec

    feeds = []
    records = [item for item in host.records("reporter").values() if isinstance(item, ReporterSpec)]
    for record in sorted(records, key=lambda item: (item.order, host.rank(item))):
        if (record.option is not None and not flags.get(record.option)) or (record.kinds and kind not in record.kinds):
            continue
        try:
            feeds.append(ReporterFeed(record, host.create(record), on_failure))
        except Exception as error:
            on_failure(record.name, error)
    return feeds


def own_feeds(instances: Sequence[object], on_failure: Callable[[str, Exception], None]) -> list[ReporterFeed]:
    """Feeds of reporters that a command made itself, in the order given."""
    from vally.records import ReporterSpec

    feeds = []
    for instance in instances:
        made = type(instance)
        record = ReporterSpec(
            name=made.__name__, summary="of the command", factory=made, blocking=False, notice_s=NOTICE_S
        )
        feeds.append(ReporterFeed(record, instance, on_failure))
    return feeds


class ReporterBoard:
    """All reporters of a run; they see the same events in the same order."""

    def __init__(self, feeds: Sequence[ReporterFeed]) -> None:
        self.feeds = list(feeds)

    async def send(self, method: str, event: Any) -> None:
        """Queue an event for every reporter."""
        for feed in self.feeds:
            if feed.wants(method):
                await feed.put(method, event)

    def send_nowait(self, method: str, event: Any) -> None:
        """Queue an event where there is room; for phases, which may be dropped."""
        for feed in self.feeds:
            if feed.wants(method):
                feed.put_nowait(method, event)

    async def finish(
        self, make_event: Callable[[Mapping[str, Path]], Any], on_wait: Callable[[str], None]
    ) -> dict[str, Path]:
        """Drain and complete the reporters one after another; each sees the files named before it."""
        artifacts: dict[str, Path] = {}
        for feed in self.feeds:
            await feed.drain()
            feed.close()
            artifacts.update(await feed.complete(make_event(artifacts), on_wait))
        return artifacts
