"""One item through its backend: attempts, retries, and the result that is recorded."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from vally.model.jsonio import timestamp
from vally.run.calling import described, invoke
from vally.run.inputs import StopSignal
from vally.run.trial import TrialOptions
from vally.run.trial_record import checked_outcome, failed_outcome, skipped_outcome, trial_result

if TYPE_CHECKING:
    from pathlib import Path

    from vally.host import PluginHost
    from vally.model.results import TrialResult
    from vally.model.trajectory import Event
    from vally.records import Backend
    from vally.run.judges import ItemJudge, JudgePool
    from vally.run.plan import EvalPlan
    from vally.run.preparation import Preparation
    from vally.run.redaction import Redactor
    from vally.run.run_output import RunOutput
    from vally.run.run_settings import RunSettings
    from vally.run.stopping import Stopping
    from vally.run.trial import TrialItem, TrialOutcome

RETRY_BASE_S = 2.0
RETRY_CAP_S = 60.0
RETRY_JITTER = 0.2
BACKEND_GRACE_S = 10.0
"""How long a backend may take, beyond `--shutdown-timeout`, to end a cancelled trial and to clean up after one."""


@dataclass(frozen=True, slots=True)
class _Facts:
    attempts: int
    started_at: str
    duration_ms: int


class Attempts:
    """Runs items: as often as retries allow, with a fresh workspace each time."""

    def __init__(
        self,
        *,
        host: PluginHost,
        backend: Backend,
        ready: Preparation,
        judges: JudgePool,
        output: RunOutput,
        redactor: Redactor,
        settings: RunSettings,
        stopping: Stopping,
        on_phase: Callable[[str, str, str | None], None],
        on_event: Callable[[str, Event], None] | None = None,
    ) -> None:
        self._host = host
        self._backend = backend
        self._ready = ready
        self._judges = judges
        self._output = output
        self._redactor = redactor
        self._settings = settings
        self._stopping = stopping
        self._on_phase = on_phase
        self._on_event = on_event

    async def run(self, item: TrialItem, evaluation: EvalPlan) -> TrialResult:
        """Run one item until it succeeds or may not be tried again; never raises for what a plugin does."""
        started, started_at = time.monotonic(), timestamp()
        retries = self._settings.max_retries if evaluation.trials < 2 else 0
        judge = self._judges.client(item.judge)
        attempt = 1
        lost = 0
        while True:
            outcome = await self._attempt(item, evaluation, judge)
            lost += getattr(outcome, "lost_attempts", 0)
            warnings = await self._clean_up(item, outcome)
            if not self._may_retry(outcome, attempt, retries):
                break
            await self._wait(outcome, attempt, item)
            if self._stopping.stopped:
                break
            attempt += 1
        facts = _Facts(attempt + lost, started_at, round((time.monotonic() - started) * 1000))
        try:
            return self._result(item, outcome, judge, facts, warnings)
        except Exception as error:
            return self._result(item, self._unusable(error), judge, facts, warnings)

    async def recorded(self, item: TrialItem) -> None:
        """Tell a backend that wants to know that the result of an item it ran was written."""
        tell = getattr(self._backend, "recorded", None)
        if tell is None:
            return
        try:
            await invoke(tell, item.item_id)
        except Exception as error:
            self._settings.warn(f"backend '{self._settings.backend_name}': {described(error)}")

    def _result(
        self, item: TrialItem, outcome: TrialOutcome, judge: ItemJudge, facts: _Facts, warnings: Sequence[str]
    ) -> TrialResult:
        return trial_result(
            item,
            outcome,
            attempts=facts.attempts,
            started_at=facts.started_at,
            duration_ms=facts.duration_ms,
            warnings=(*outcome.warnings, *warnings),
            judge_usage=outcome.judge_usage or judge.usage(),
            backend=getattr(outcome, "backend_name", None) or self._settings.backend_name,
            keep_workspace=item.workspace.keep,
        )

    async def _attempt(self, item: TrialItem, evaluation: EvalPlan, judge: ItemJudge) -> TrialOutcome:
        stop = StopSignal()
        self._stopping.register(stop)
        try:
            return await self._outcome(item, self._options(item, evaluation, judge, stop))
        except Exception as error:
            return self._unusable(error)
        finally:
            self._stopping.unregister(stop)

    def _unusable(self, error: Exception) -> TrialOutcome:
        # The backend as a whole is unusable: this item is an error, and no other item may start.
        self._stopping.stop("error")
        outcome: TrialOutcome = failed_outcome(error)
        return outcome

    async def _outcome(self, item: TrialItem, options: TrialOptions) -> TrialOutcome:
        """What the backend says; a cancelled trial that it does not end in time is given up."""
        outcome: Any = skipped_outcome("cancelled")
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        limit = self._settings.shutdown_timeout_s + BACKEND_GRACE_S
        with (
            anyio.CancelScope() as scope,
            options.stop.heard_by(lambda _: timers.append(loop.call_later(limit, scope.cancel))),
        ):
            try:
                outcome = await invoke(self._backend.run_trial, item, options)
            finally:
                for timer in timers:
                    timer.cancel()
        checked: TrialOutcome = checked_outcome(outcome)
        return checked

    def _options(self, item: TrialItem, evaluation: EvalPlan, judge: ItemJudge, stop: StopSignal) -> TrialOptions:
        executor = self._ready.executor(evaluation)
        directory = self._output.of(item)
        options = TrialOptions(
            host=self._host,
            executor=executor.instance,
            executor_config=self._ready.config(evaluation),
            executor_record=executor.record,
            judge=judge,
            skip_grade=self._settings.skip_grade,
            output_dir=directory.trial_dir(item.segments),
            run_dir=directory.path,
            session_log=self._session_log(item),
            process_env=self._settings.environ,
            shutdown_timeout_s=self._settings.shutdown_timeout_s,
            redactor=self._redactor,
            on_phase=partial(self._on_phase, item.item_id),
            stop=stop,
        )
        return options if self._on_event is None else replace(options, on_event=partial(self._on_event, item.item_id))

    def _session_log(self, item: TrialItem) -> Path | None:
        return self._output.of(item).session_log(item.segments) if self._settings.keep_session_logs else None

    async def _clean_up(self, item: TrialItem, outcome: TrialOutcome) -> tuple[str, ...]:
        self._on_phase(item.item_id, "cleanup", None)
        limit = self._settings.shutdown_timeout_s + BACKEND_GRACE_S
        warnings: Sequence[str] | None = None
        try:
            with anyio.CancelScope(shield=True), anyio.fail_after(limit):
                warnings = await invoke(outcome.cleanup)
            return tuple(warnings or ())
        except TimeoutError:
            return (f"clean-up did not end within {limit:g}s",)
        except Exception as error:
            return (f"clean-up failed: {described(error)}",)

    def _may_retry(self, outcome: TrialOutcome, attempt: int, retries: int) -> bool:
        error = outcome.error
        retryable = outcome.status == "error" and error is not None and error.retryable
        return retryable and attempt <= retries and not self._stopping.stopped

    async def _wait(self, outcome: TrialOutcome, attempt: int, item: TrialItem) -> None:
        # Jitter follows the trial's seed when there is one, so that a seeded run repeats itself.
        source: Any = random.Random(item.seed + attempt) if item.seed is not None else random
        delay = min(RETRY_CAP_S, RETRY_BASE_S * 2 ** (attempt - 1)) * source.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)
        delay = max(delay, (outcome.retry_after_ms or 0) / 1000)
        with anyio.move_on_after(delay):
            while not self._stopping.stopped:
                await anyio.sleep(0.1)
