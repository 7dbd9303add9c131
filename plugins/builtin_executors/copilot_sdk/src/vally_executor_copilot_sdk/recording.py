"""The record of one session: every event goes to all that want it, and the trajectory is made of them."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from vally import Event, ExecutorOptions, Stimulus, Trajectory, TrajectoryBuilder
from vally_executor_copilot_sdk.mapping import EventMapper, is_fleeting
from vally_executor_copilot_sdk.native import PROMPT, Native, live_event, read_session, with_data
from vally_executor_copilot_sdk.repair import repaired, unanswered

FILE_WAIT_S = 1.0
_FILE_STEP_S = 0.05


class SessionRecord:
    """Takes the events of a session as they come; `listeners` hear of each one."""

    def __init__(
        self, stimulus: Stimulus, options: ExecutorOptions, listeners: tuple[Callable[[Native], None], ...] = ()
    ) -> None:
        self._stimulus = stimulus
        self._options = options
        self._listeners = listeners
        self._events: list[Native] = []
        self._began: float | None = None
        self._log = _live_log(options)
        self._replaying = False
        self._finished = False
        self.builder = self._new_builder()
        self._mapper = EventMapper(self.builder)
        self._repairs = [0, 0, 0]

    def on_event(self, event: Any) -> None:
        """Listen to the SDK."""
        native, known = live_event(event)
        self._hear(native, known=known)

    def on_unreadable(self, event: Native) -> None:
        """Listen to what the SDK could not read."""
        self._hear(with_data(event), known=True)

    def _hear(self, native: Native, *, known: bool) -> None:
        self._options.on_raw_event(native)
        self._write(native)
        for listener in self._listeners:
            listener(native)
        if known and not self._finished:
            self.take(native)

    def take(self, event: Native) -> None:
        """Record an event in the runtime's own form."""
        if is_fleeting(event):
            return
        if self._began is None and event["type"] == PROMPT:
            self._began = time.monotonic()
        self._events.append(event)
        self._mapper.feed(event)

    async def complete(self, path: Path, *, wait: bool) -> None:
        """Add what only the file of the session tells.

        With `wait` it gets a second to hold the results that are missing, and the end of the last response.
        """
        until = time.monotonic() + (FILE_WAIT_S if wait else 0.0)
        while True:
            persisted = await anyio.to_thread.run_sync(read_session, path)
            if self._is_covered_by(persisted) or time.monotonic() >= until:
                break
            await anyio.sleep(_FILE_STEP_S)
        found = repaired(self._events, persisted)
        if found.changed:
            counts = (found.tool_results, found.usage_records, found.others)
            self._repairs = [old + new for old, new in zip(self._repairs, counts, strict=True)]
            self._rebuild(list(found.events))

    def _is_covered_by(self, persisted: Sequence[Native]) -> bool:
        told = {event["data"].get("toolCallId") for event in persisted if event["type"] == "tool.execution_complete"}
        ends = [event.get("id") for event in self._events if event["type"] == "assistant.turn_end"]
        return unanswered(self._events) <= told and (not ends or ends[-1] in {event.get("id") for event in persisted})

    def repair_warning(self) -> str | None:
        """What is to be said about all repairs; None when there were none."""
        results, usages, others = self._repairs
        if not any(self._repairs):
            return None
        more = f", {others} other events" if others else ""
        return f"{results} tool results, {usages} usage records{more} were read from the session file"

    def finish(self, end_reason: str) -> Trajectory:
        """The trajectory of what was recorded; what the runtime tells while the session ends is not."""
        self._finished = True
        trajectory = self.builder.finish(end_reason)
        if trajectory.metrics is None or self._began is None:
            return trajectory
        # A builder that was made anew does not know when the first prompt was sent.
        wall = round((time.monotonic() - self._began) * 1000)
        return trajectory.model_copy(update={"metrics": trajectory.metrics.model_copy(update={"wall_time_ms": wall})})

    def _rebuild(self, events: list[Native]) -> None:
        metadata = self.builder.metadata
        self.builder = self._new_builder()
        self.builder.metadata = metadata
        self._mapper = EventMapper(self.builder)
        self._events = events
        # Who watches has seen them already.
        self._replaying = True
        for event in events:
            self._mapper.feed(event)
        self._replaying = False

    def _new_builder(self) -> TrajectoryBuilder:
        options = replace(self._options, on_event=self._show)
        return TrajectoryBuilder(self._stimulus, options, executor="copilot-sdk", skill_events=True)

    def _show(self, event: Event) -> None:
        if not self._replaying:
            self._options.on_event(event)

    def _write(self, event: Native) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError), self._log.open("a", encoding="utf-8", errors="replace") as file:
                file.write(self._options.redact(json.dumps(event, default=str)) + "\n")


def _live_log(options: ExecutorOptions) -> Path | None:
    if not options.log.isEnabledFor(logging.DEBUG):
        return None
    options.trial_dir.mkdir(parents=True, exist_ok=True)
    return options.trial_dir / "live-events.jsonl"
