"""One trial, or one grading, on a worker: with the worker's paths inside, with the driver's paths outside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import (
    Backend,
    BackendError,
    ErrorInfo,
    Event,
    GradeOutcome,
    GradeRequest,
    PluginHost,
    Redactor,
    RunContext,
    StopSignal,
    TrialItem,
    TrialOptions,
    TrialOutcome,
    invoke,
)
from vally_backend_ray.messages import GradeOrder, TrialOrder
from vally_backend_ray.mirror import Homeward, map_texts
from vally_backend_ray.outbox import Outbox
from vally_backend_ray.outcome import RemoteOutcome, sent
from vally_backend_ray.parcels import travelled
from vally_backend_ray.pickling import packed
from vally_backend_ray.remote_judge import RemoteJudge
from vally_backend_ray.spool import RUN


@dataclass(slots=True)
class WorkerHost:
    """A plugin host on a worker, with its executors, which serve all trials that use them."""

    host: PluginHost
    context: RunContext
    executors: dict[str, Any]

    def executor(self, name: str) -> Any:
        """The executor of that name, made at first use. Raises `PluginError`."""
        if name not in self.executors:
            record = self.host.require("executor", name)
            self.executors[name] = self.host.create(record)
            configure = getattr(self.executors[name], "configure", None)
            if configure is not None:
                configure(self.context)
        return self.executors[name]

    async def shutdown(self) -> None:
        """Shut the executors down."""
        for name, executor in self.executors.items():
            record = self.host.require("executor", name)
            await invoke(executor.shutdown, blocking=record.blocking)


@dataclass(slots=True)
class Desk:
    """What the trials of a worker share. `redactor` knows what only this worker's environment holds, if anything."""

    backend: Backend
    backend_name: str
    process_env: Mapping[str, str]
    redactor: Redactor | None
    outbox: Outbox


class WorkerTrial:
    """Runs one order; `root` is where the files of its bundle lie, `place` its directory in the spool."""

    def __init__(self, attempt: str, order: TrialOrder, host: WorkerHost, root: Path, place: Path, desk: Desk) -> None:
        self._attempt = attempt
        self._order = order
        self._host = host
        self._root = root
        self._place = place
        self._desk = desk
        self._outcome: TrialOutcome | None = None
        self.stop = StopSignal()
        self.judge = None if order.judge is None else RemoteJudge(attempt, order.judge, desk.outbox)

    async def run(self) -> bytes:
        """Run the trial and return its packed outcome; raises nothing that an item can cause."""
        item = travelled(self._order.item, self._root)
        try:
            options = self._options(item)
        except Exception as error:
            found = self._failed(error)
        else:
            self._outcome = await self._desk.backend.run_trial(item, options)
            found = sent(self._outcome, self._desk.backend_name)
        return await anyio.to_thread.run_sync(self._home, found)

    async def export(self, selection: Any, target: Path) -> Any:
        """Put files of the workspace into `target`. Raises `BackendError`."""
        if self._outcome is None:
            raise BackendError("workspace is not available")
        return await self._outcome.export_workspace(selection, target)

    async def clean_up(self) -> tuple[str, ...]:
        """Remove what the trial left; returns warnings."""
        outcome, self._outcome = self._outcome, None
        return () if outcome is None else tuple(await outcome.cleanup())

    def _options(self, item: TrialItem) -> TrialOptions:
        order, host = self._order, self._host.host
        record = host.require("executor", item.executor.name)
        config = host.parse_config(record, item.executor.config, spec_dir=item.spec_dir)
        outbox, attempt = self._desk.outbox, self._attempt

        def on_event(event: Event) -> None:
            outbox.put_threadsafe(("event", attempt, event))

        return TrialOptions(
            host=host,
            executor=self._host.executor(item.executor.name),
            executor_config=config,
            executor_record=record,  # type: ignore[arg-type]  # `require` gives the record of the kind it is asked for
            judge=self.judge,
            skip_grade=order.skip_grade,
            output_dir=self._here(order.output_dir),
            run_dir=self._here(order.run_dir),
            session_log=self._here(order.session_log),
            process_env=self._desk.process_env,
            shutdown_timeout_s=order.shutdown_timeout_s,
            redactor=self._desk.redactor or Redactor({}),
            on_phase=lambda phase, detail: outbox.put_threadsafe(("phase", attempt, (phase, detail))),
            on_event=on_event if order.wants_events else _ignore,
            stop=self.stop,
            log=logging.getLogger("vally.trial"),
        )

    def _here(self, path: Path | None) -> Path | None:
        """Where the worker writes what belongs to a path of the run directory."""
        base = self._order.run_dir or self._order.output_dir
        if path is None or base is None:
            return None
        inside = path.relative_to(base) if path.is_relative_to(base) else Path("other") / path.name
        return self._place / RUN / inside

    def _failed(self, error: Exception) -> RemoteOutcome:
        code = getattr(error, "code", None) or "executor-unavailable"
        message = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        info = ErrorInfo(message=message, code=code, phase="preparing")
        return RemoteOutcome("error", error=info, backend_name=self._desk.backend_name)

    def _home(self, outcome: RemoteOutcome) -> bytes:
        pairs = {str(self._root): ""}
        base = self._order.run_dir or self._order.output_dir
        if base is not None:
            pairs[str(self._place / RUN)] = str(base)
        try:
            return sent_home(outcome, pairs, self._desk.redactor)
        except Exception as error:
            # What an executor or a grader put into its result defies being sent; the item needs a record all the same.
            message = f"the result cannot be sent: {type(error).__name__}: {error}"
            info = ErrorInfo(message=message, code="unrecordable-result", phase="capturing")
            return packed(RemoteOutcome("error", error=info, backend_name=self._desk.backend_name))


def sent_home(value: Any, pairs: Mapping[str, str], redactor: Redactor | None) -> bytes:
    """A value as bytes, with the driver's paths and without the secrets of this worker."""
    changes: list[Callable[[str], str]] = [] if redactor is None else [redactor.text]
    data = packed(value)
    homeward = Homeward(pairs)
    if homeward.concerns(data):
        changes.append(homeward.text)
    for change in changes:
        value = map_texts(value, change)
    return packed(value) if changes else data


async def grade(order: GradeOrder, host: WorkerHost, root: Path, judge: RemoteJudge | None, desk: Desk) -> bytes:
    """Grade a recorded trajectory where its workspace can be seen, and return the packed outcome."""
    for path in (order.run_dir, order.diff_file):
        if path is not None and not path.exists():
            message = f"'{path}' cannot be seen by the worker: grade with --backend local, or share the directory"
            return packed(
                GradeOutcome(grade=None, error=ErrorInfo(message=message, code="workspace-not-found", phase="grading"))
            )
    options = TrialOptions(
        host=host.host,
        executor=None,  # type: ignore[arg-type]  # nothing is run
        judge=judge,
        process_env=desk.process_env,
        redactor=desk.redactor or Redactor({}),
    )
    request = GradeRequest(
        item=travelled(order.item, root),
        trajectory=order.trajectory,
        options=options,
        work_dir=order.work_dir,
        run_dir=order.run_dir,
        diff_file=order.diff_file,
    )
    outcome = await desk.backend.grade_trial(request)
    return sent_home(outcome, {str(root): ""}, desk.redactor)


def _ignore(_: Event) -> None:
    return None
