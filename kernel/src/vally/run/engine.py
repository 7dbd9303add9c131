"""The run: one worker pool for all items, one record per item, reporters fed, and a verdict at the end."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from vally.model.jsonio import timestamp
from vally.run.attempts import Attempts
from vally.run.budgets import Budgets
from vally.run.calling import described, invoke, raise_thread_limit
from vally.run.closed_pipe import report_is_unread
from vally.run.item_queue import ItemQueue
from vally.run.recorder import Recorder
from vally.run.reporters import ReporterBoard
from vally.run.reporting import (
    Diagnostics,
    RunComplete,
    RunStart,
    TrialPhase,
    TrialStart,
)
from vally.run.resuming import Kept
from vally.run.run_settings import RunOutcome
from vally.run.stopping import Stopping
from vally.run.summary import RunTally
from vally.run.trial_record import skipped_result

if TYPE_CHECKING:
    from vally.errors import VallyError
    from vally.host import PluginHost
    from vally.model.results import RunSummary
    from vally.model.trajectory import Event
    from vally.records import Backend
    from vally.run.judges import JudgePool
    from vally.run.plan import Plan
    from vally.run.preparation import Preparation
    from vally.run.redaction import Redactor
    from vally.run.run_output import RunOutput
    from vally.run.run_settings import RunSettings
    from vally.run.trial import TrialItem


class Engine:
    """Runs one plan; use `await Engine(...).run()` once."""

    def __init__(
        self,
        plan: Plan,
        *,
        host: PluginHost,
        backend: Backend,
        ready: Preparation,
        judges: JudgePool,
        board: ReporterBoard,
        output: RunOutput,
        redactor: Redactor,
        settings: RunSettings,
        stopping: Stopping,
        kept: Kept | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._plan = plan
        self._board = board
        self._output = output
        self._settings = settings
        self._backend = backend
        self._ready = ready
        self._judges = judges
        self._stopping = stopping
        self._attempts = Attempts(
            host=host,
            backend=backend,
            ready=ready,
            judges=judges,
            output=output,
            redactor=redactor,
            settings=settings,
            stopping=self._stopping,
            on_phase=self._phase,
            on_event=self._agent_event if settings.reporting.verbose else None,
        )
        self._tally = RunTally(
            [evaluation.planned for evaluation in plan.evals],
            graded=not settings.skip_grade,
        )
        self._budgets = Budgets(
            self._tally,
            self._stopping,
            max_cost=settings.max_cost,
            max_tokens=settings.max_tokens,
            warn=settings.warn,
        )
        self._recorder = Recorder(
            plan,
            output=output,
            tally=self._tally,
            board=board,
            stopping=self._stopping,
            fail_fast=settings.fail_fast,
            budgets=self._budgets,
            write_failure=self._write_failed,
        )
        self._kept = kept or Kept()
        self._lines: list[str] = []
        self._started = time.monotonic()
        self._started_at = self._kept.started_at or timestamp()

    async def run(self) -> RunOutcome:
        """Run every item that can be run, record all, and close the run. Raises `ResultsWriteError` never."""
        raise_thread_limit()
        async with anyio.create_task_group() as group:
            for feed in self._board.feeds:
                group.start_soon(feed.run)
            await self._start()
            await self._replay()
            await self._trials()
            outcome = await self._close()
            group.cancel_scope.cancel()
        return outcome

    async def _start(self) -> None:
        settings = self._settings
        await self._board.send(
            "on_run_start",
            RunStart(
                run_id=self._plan.options.run_id,
                kind=settings.kind,
                variant_dirs=self._variant_dirs(),
                evals=tuple(evaluation.planned for evaluation in self._plan.evals),
                total_items=self._plan.total,
                workers=settings.workers,
                metadata=settings.metadata,
                suites=settings.suites,
                backend=settings.backend_name,
                version=settings.version,
                run_dir=self._output.path,
                run_dir_display=self._output.display,
                started_at=self._started_at,
                options=settings.reporting,
                environ=settings.environ,
            ),
        )
        if settings.diagnostics:
            await self._board.send("on_diagnostics", Diagnostics(diagnostics=settings.diagnostics))

    def _variant_dirs(self) -> dict[str, Path]:
        if "" in self._output.parts:
            return {}
        # A part without any eval, as in an empty shard, goes by the name of its directory.
        names = {item.part: item.planned.variant for item in self._plan.evals}
        return {names.get(part, part): directory.path for part, directory in self._output.parts.items()}

    async def _replay(self) -> None:
        """Let tallies and reporters see the records of earlier attempts, which are on disk already."""
        if not self._kept.places:
            return
        for item in self._plan.items():
            place = self._kept.place(item)
            if place is not None:
                await self._recorder.replay(item, place.read() + b"\n")

    async def _trials(self) -> None:
        left = (item for item in self._plan.items() if self._kept.place(item) is None)
        items = ItemQueue(left, self._settings.max_per_model)
        workers = max(1, min(self._settings.workers, self._plan.total))
        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(self._work, items)
        # What was planned and never started is recorded too, so that every item has exactly one record.
        for item in items.rest():
            await self._recorder.record(item, skipped_result(item, self._stopping.skip_reason))

    async def _work(self, items: ItemQueue) -> None:
        while (item := await items.take()) is not None:
            try:
                await self._trial(item)
            finally:
                items.done(item)

    async def _trial(self, item: TrialItem) -> None:
        self._budgets.check()
        if self._stopping.stopped:
            await self._recorder.record(item, skipped_result(item, self._stopping.skip_reason))
            return
        evaluation = self._plan.evals[item.eval_index]
        await self._board.send("on_trial_start", TrialStart(item=self._output.shown_item(item)))
        result = await self._attempts.run(item, evaluation)
        if await self._recorder.record(item, result):
            await self._attempts.recorded(item)
        # Without a pause a run of instant trials would never let signals and reporters in.
        await anyio.sleep(0)

    def _agent_event(self, item_id: str, event: Event) -> None:
        """Show what the agent says as a detail of its phase; executors may call this from threads of their own."""
        text = event.data.get("content")
        if event.type == "assistant_message" and event.agent_id is None and isinstance(text, str) and text.strip():
            self._loop.call_soon_threadsafe(self._phase, item_id, "running", self._output.console(text))

    def _phase(self, item_id: str, phase: str, detail: str | None = None) -> None:
        self._board.send_nowait("on_trial_phase", TrialPhase(item_id=item_id, phase=phase, detail=detail))

    async def _close(self) -> RunOutcome:
        self._stopping.closing = True
        with anyio.CancelScope(shield=True):
            for warning in await self._shutdown():
                self._settings.warn(warning)
            await self._recorder.settle()
            summary, line = await self._summarised()
            status: Literal["completed", "cancelled"] = summary.status
            artifacts = await self._board.finish(
                lambda named: RunComplete(
                    summary=summary,
                    line=line,
                    status=status,
                    run_dir=self._output.path,
                    run_dir_display=self._output.display,
                    artifacts={**self._records(), **named},
                    exit_code=0,
                    lines=tuple(self._lines),
                ),
                self._wait_for_reporter,
            )
        return RunOutcome(
            summary=summary,
            artifacts={**self._records(), **artifacts},
            signal=self._stopping.signal_number,
            stdout_closed=self._stopping.stdout_closed,
            lines=tuple(self._lines),
        )

    def _wait_for_reporter(self, name: str) -> None:
        if not self._settings.reporting.quiet:
            self._settings.notice(f"running reporter {name}…")

    def _records(self) -> dict[str, Path]:
        """The results file as an artifact; those of variants are for the command to name."""
        return {"JSONL": self._output.results_path} if "" in self._output.parts else {}

    async def _summarised(self) -> tuple[RunSummary, bytes]:
        """The summary of the run, and the line of it; every results file gets one over its own evals."""
        evals_of: dict[str, list[int]] = {}
        for evaluation in self._plan.evals:
            evals_of.setdefault(evaluation.part, []).append(evaluation.planned.index)
        duration = self._kept.duration_ms + round((time.monotonic() - self._started) * 1000)
        completed_at = timestamp()
        make = partial(
            self._tally.run_summary,
            run_id=self._plan.options.run_id,
            started_at=self._started_at,
            completed_at=completed_at,
            duration_ms=duration,
            status="cancelled" if self._stopping.cancelled else "completed",
            stop_reason=self._stopping.stop_reason,
        )
        line = b""
        for part, indexes in evals_of.items():
            path = self._output.display_of(self._output.parts[part].results_path)
            line = self._output.summary_line(make(jsonl_path=path, indexes=indexes))
            await self._recorder.append(line, part)
        if "" in self._output.parts:
            return make(jsonl_path=self._output.display_of(self._output.results_path)), line
        return make(), b""

    async def _shutdown(self) -> list[str]:
        warnings = []
        for name, executor in sorted(self._ready.executors.items()):
            label = f"executor '{name}'"
            warnings += await self._shut(label, executor.instance, blocking=executor.record.blocking)
        warnings += await self._judges.shutdown()
        warnings += await self._shut(f"backend '{self._settings.backend_name}'", self._backend)
        return warnings

    async def _shut(self, label: str, plugin: Any, *, blocking: bool = True) -> list[str]:
        try:
            with anyio.fail_after(self._settings.shutdown_timeout_s):
                await invoke(plugin.shutdown, blocking=blocking)
        except TimeoutError:
            return [f"{label} did not shut down within {self._settings.shutdown_timeout_s:g}s"]
        except Exception as error:
            return [f"{label} did not shut down: {described(error)}"]
        return []

    def reporter_failed(self, name: str, error: Exception) -> None:
        """Say that a reporter is disabled; a closed stdout ends the run instead."""
        if isinstance(error, BrokenPipeError) and report_is_unread():
            self._stopping.close_stdout()
            return
        line = f"reporter '{name}' failed and is disabled: {described(error)}"
        self._lines.append(line)
        self._settings.warn(line)

    def _write_failed(self, error: VallyError) -> None:
        # At the end writing is tried once more, and usually fails as before.
        if error.message not in self._lines:
            self._lines.append(error.message)
            self._settings.fail(error)
