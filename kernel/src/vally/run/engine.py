"""The run: one worker pool for all items, one record per item, reporters fed, and a verdict at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from vally.model.jsonio import timestamp
from vally.run.attempts import Attempts
from vally.run.reporters import ReporterBoard
from vally.run.reporting import (
    Diagnostics,
    EvalComplete,
    RunComplete,
    RunOptions,
    RunStart,
    TrialDone,
    TrialPhase,
    TrialStart,
)
from vally.run.results_file import ResultsWriteError
from vally.run.stopping import Stopping
from vally.run.summary import RunTally, TrialFacts
from vally.run.trial_record import skipped_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic
    from vally.model.results import RunSummary, TrialResult
    from vally.records import Backend
    from vally.run.judges import JudgePool
    from vally.run.plan import EvalPlan, Plan
    from vally.run.preparation import Preparation
    from vally.run.redaction import Redactor
    from vally.run.run_output import RunOutput
    from vally.run.trial import TrialItem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run proceeds. `environ` is the process environment; `notice` prints one line for people at once."""

    workers: int = 5
    max_retries: int = 0
    fail_fast: bool = False
    skip_grade: bool = False
    require_pass: bool = False
    keep_session_logs: bool = False
    shutdown_timeout_s: float = 30.0
    backend_name: str = "local"
    version: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reporting: RunOptions = field(default_factory=RunOptions)
    diagnostics: tuple[Diagnostic, ...] = ()
    notice: Callable[[str], None] = print
    warn: Callable[[str], None] = print
    handle_signals: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to. `artifacts` maps labels to files; `signal` is the number of the signal that ended it."""

    summary: RunSummary
    artifacts: Mapping[str, Path]
    signal: int | None = None
    stdout_closed: bool = False
    lines: tuple[str, ...] = ()


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
    ) -> None:
        self._plan = plan
        self._board = board
        self._output = output
        self._settings = settings
        self._backend = backend
        self._ready = ready
        self._judges = judges
        self._stopping = Stopping(settings.notice, settings.shutdown_timeout_s)
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
        )
        self._tally = RunTally(
            [evaluation.planned for evaluation in plan.evals],
            pass_rates={item.planned.index: item.spec.scoring.pass_rate for item in plan.evals},
            graded=not settings.skip_grade,
        )
        self._completed = 0
        self._write_lock = anyio.Lock()
        self._lines: list[str] = []
        self._started = time.monotonic()
        self._started_at = timestamp()
        self._log = logging.getLogger("vally.run")

    async def run(self) -> RunOutcome:
        """Run every item that can be run, record all, and close the run. Raises `ResultsWriteError` never."""
        async with anyio.create_task_group() as group:
            for feed in self._board.feeds:
                group.start_soon(feed.run)
            await self._start()
            async with self._stopping.signals(self._settings.handle_signals):
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
                evals=tuple(evaluation.planned for evaluation in self._plan.evals),
                total_items=self._plan.total,
                workers=settings.workers,
                metadata=settings.metadata,
                suites=settings.suites,
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

    async def _trials(self) -> None:
        items = self._plan.items()
        workers = max(1, min(self._settings.workers, self._plan.total))
        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(self._work, items)
        # What was planned and never started is recorded too, so that every item has exactly one record.
        for item in items:
            await self._record(item, skipped_result(item, self._stopping.skip_reason))

    async def _work(self, items: Iterator[TrialItem]) -> None:
        for item in items:
            if self._stopping.stopped:
                await self._record(item, skipped_result(item, self._stopping.skip_reason))
                continue
            evaluation = self._plan.evals[item.eval_index]
            await self._board.send("on_trial_start", TrialStart(item=item))
            result = await self._attempts.run(item, evaluation)
            await self._record(item, result)
            # Without a pause a run of instant trials would never let signals and reporters in.
            await anyio.sleep(0)

    async def _record(self, item: TrialItem, result: TrialResult) -> None:
        evaluation = self._plan.evals[item.eval_index]
        facts = TrialFacts.from_result(result, evaluation.threshold, eval_index=item.eval_index)
        shown, line = await anyio.to_thread.run_sync(self._output.trial_record, result, item)
        await self._append(line)
        self._completed += 1
        self._tally.add(facts)
        if self._settings.fail_fast and _is_bad(facts):
            self._stopping.stop("fail-fast")
        await self._board.send(
            "on_trial_result",
            TrialDone(
                item=item,
                result=shown,
                line=line,
                passed=facts.passed,
                completed=self._completed,
                total=self._plan.total,
            ),
        )
        await self._complete_eval(evaluation)

    async def _append(self, line: bytes) -> None:
        if self._stopping.write_failed:
            return
        async with self._write_lock:
            try:
                await anyio.to_thread.run_sync(self._output.append, line)
            except ResultsWriteError as error:
                self._settings.warn(str(error))
                self._lines.append(str(error))
                self._stopping.fail_write()

    async def _complete_eval(self, evaluation: EvalPlan) -> None:
        if not self._tally.is_complete(evaluation.planned.index):
            return
        summary = self._tally.eval_summary(evaluation.planned.index)
        await self._board.send("on_eval_complete", EvalComplete(eval=evaluation.planned, summary=summary))

    def _phase(self, item_id: str, phase: str, detail: str | None = None) -> None:
        self._board.send_nowait("on_trial_phase", TrialPhase(item_id=item_id, phase=phase, detail=detail))

    async def _close(self) -> RunOutcome:
        with anyio.CancelScope(shield=True):
            warnings = await self._shutdown()
            for warning in warnings:
                self._settings.warn(warning)
            summary = self._summary()
            line = self._output.summary_line(summary)
            await self._append(line)
            status: Literal["completed", "cancelled"] = summary.status
            artifacts = await self._board.finish(
                lambda named: RunComplete(
                    summary=summary,
                    line=line,
                    status=status,
                    run_dir=self._output.path,
                    run_dir_display=self._output.display,
                    artifacts={"JSONL": self._output.results_path, **named},
                    exit_code=0,
                    lines=tuple(self._lines),
                ),
                lambda name: self._log.info("running reporter %s", name),
            )
        return RunOutcome(
            summary=summary,
            artifacts={"JSONL": self._output.results_path, **artifacts},
            signal=self._stopping.signal_number,
            stdout_closed=self._stopping.stdout_closed,
            lines=tuple(self._lines),
        )

    def _summary(self) -> RunSummary:
        return self._tally.run_summary(
            run_id=self._plan.options.run_id,
            started_at=self._started_at,
            completed_at=timestamp(),
            duration_ms=round((time.monotonic() - self._started) * 1000),
            jsonl_path=self._output.display_of(self._output.results_path),
            status="completed" if self._stopping.signal_number is None else "cancelled",
            stop_reason=self._stopping.stop_reason,
        )

    async def _shutdown(self) -> list[str]:
        warnings = []
        for name, executor in sorted(self._ready.executors.items()):
            warnings += await self._shut(f"executor '{name}'", executor.instance)
        warnings += await self._judges.shutdown()
        warnings += await self._shut(f"backend '{self._settings.backend_name}'", self._backend)
        return warnings

    async def _shut(self, label: str, plugin: Any) -> list[str]:
        try:
            with anyio.fail_after(self._settings.shutdown_timeout_s):
                await plugin.shutdown()
        except TimeoutError:
            return [f"{label} did not shut down within {self._settings.shutdown_timeout_s:g}s"]
        except Exception as error:
            return [f"{label} did not shut down: {type(error).__name__}: {error}"]
        return []

    def reporter_failed(self, name: str, error: Exception) -> None:
        """Say that a reporter is disabled; a closed stdout ends the run instead."""
        if isinstance(error, BrokenPipeError):
            self._stopping.close_stdout()
            return
        line = f"reporter '{name}' failed and is disabled: {type(error).__name__}: {error}"
        self._lines.append(line)
        self._settings.warn(line)


def _is_bad(facts: TrialFacts) -> bool:
    """Whether a trial ends a run with fail-fast: its verdict is fail or error."""
    return facts.status == "error" or facts.grader_error or facts.passed is False
