"""Recording finished items: the line on disk first, then the counts, then what reporters are told."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.to_thread

from vally.model.jsonio import parse_json
from vally.model.results import load_trial_result
from vally.run.reporting import EvalComplete, TrialDone
from vally.run.results_file import ResultsWriteError
from vally.run.summary import TrialFacts
from vally.run.trial_record import unrecordable_result

if TYPE_CHECKING:
    from vally.model.results import TrialResult
    from vally.run.budgets import Budgets
    from vally.run.plan import Plan
    from vally.run.reporters import ReporterBoard
    from vally.run.run_output import RunOutput
    from vally.run.stopping import Stopping
    from vally.run.summary import RunTally
    from vally.run.trial import TrialItem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A finished item; `result` is what reporters may see of it."""

    item: TrialItem
    result: TrialResult
    line: bytes
    facts: TrialFacts


class Recorder:
    """Writes one record per item. Results whose line cannot be written wait for `settle`; no reporter sees them before.

    `write_failure` is called at the first failed write.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        output: RunOutput,
        tally: RunTally,
        board: ReporterBoard,
        stopping: Stopping,
        fail_fast: bool,
        budgets: Budgets,
        write_failure: Callable[[ResultsWriteError], None],
    ) -> None:
        self._plan = plan
        self._output = output
        self._tally = tally
        self._board = board
        self._stopping = stopping
        self._fail_fast = fail_fast
        self._budgets = budgets
        self._write_failure = write_failure
        self._lock = threading.Lock()
        self._broken = False
        self._unwritten: list[_Record] = []
        self._completed = 0
        self._told: Counter[int] = Counter()
        self._log = logging.getLogger("vally.run")

    async def record(self, item: TrialItem, result: TrialResult) -> bool:
        """Record one item, and stop the run when that is due; returns whether the record is on disk."""
        # One visit to a thread does it all: making a line may take long, and so may the disk.
        record, written = await anyio.to_thread.run_sync(self._written, item, result)
        self._tally.add(record.facts)
        self._budgets.note(record.facts)
        if self._fail_fast and record.facts.bad:
            self._stopping.stop("fail-fast")
        if not self._is_on_disk(written):
            self._unwritten.append(record)
            return False
        await self._tell(record)
        return True

    def _written(self, item: TrialItem, result: TrialResult) -> tuple[_Record, ResultsWriteError | bool]:
        record = self._made(item, result)
        return record, self._append(record.line, item.part)

    async def replay(self, item: TrialItem, line: bytes) -> None:
        """Count a record that is in the file already, and let reporters see it."""
        result = load_trial_result(parse_json(line))
        threshold = self._plan.evals[item.eval_index].threshold
        facts = TrialFacts.from_result(result, threshold, eval_index=item.eval_index)
        self._tally.add(facts)
        await self._tell(_Record(item=item, result=result, line=line, facts=facts))

    def _made(self, item: TrialItem, result: TrialResult) -> _Record:
        try:
            return self._encoded(item, result)
        except Exception as error:
            # What a plugin returned defies being written; its item must have a record all the same.
            self._log.debug("record of %s", item.item_id, exc_info=error)
            return self._encoded(item, unrecordable_result(item, result, error))

    def _encoded(self, item: TrialItem, result: TrialResult) -> _Record:
        threshold = self._plan.evals[item.eval_index].threshold
        shown, line = self._output.trial_record(result, item)
        # Facts hold texts of errors, so they are taken from what has no secrets any more.
        ended = None if result.started_at is None else time.monotonic() * 1000
        facts = TrialFacts.from_result(shown, threshold, eval_index=item.eval_index, ended_ms=ended)
        return _Record(item=item, result=shown, line=line, facts=facts)

    async def append(self, line: bytes, part: str = "") -> bool:
        """Write a line and return whether it is on disk; after a failed write none is tried before `settle`."""
        return self._is_on_disk(await anyio.to_thread.run_sync(self._append, line, part))

    def _append(self, line: bytes, part: str) -> ResultsWriteError | bool:
        with self._lock:
            if self._stopping.write_failed or self._broken:
                return False
            try:
                self._output.append(line, part)
            except ResultsWriteError as error:
                self._broken = True
                return error
        return True

    def _is_on_disk(self, written: ResultsWriteError | bool) -> bool:
        if isinstance(written, ResultsWriteError):
            self._write_failure(written)
            self._stopping.fail_write()
            return False
        return written

    async def settle(self) -> None:
        """Try once more to write what could not be written: the trials that have ended may have freed the disk."""
        waiting, self._unwritten = self._unwritten, []
        if not waiting:
            return
        self._stopping.write_failed = self._broken = False
        for place, record in enumerate(waiting):
            if not await self.append(record.line, record.item.part):
                for lost in waiting[place:]:
                    self._count_as_lost(lost)
                return
            await self._tell(record)

    def _count_as_lost(self, record: _Record) -> None:
        """A trial without a record was not measured, whatever its verdict was: nobody can look it up."""
        facts = record.facts
        lost = TrialFacts(
            eval_index=facts.eval_index,
            stimulus=facts.stimulus,
            trial_index=facts.trial_index,
            status="skipped",
            stopped=True,
            tokens=facts.tokens,
            judge_tokens=facts.judge_tokens,
            costs=facts.costs,
            started_at=facts.started_at,
            duration_ms=facts.duration_ms,
        )
        self._tally.add(lost)

    async def _tell(self, record: _Record) -> None:
        self._completed += 1
        done = TrialDone(
            item=self._output.shown_item(record.item),
            result=record.result,
            line=record.line,
            passed=record.facts.passed,
            completed=self._completed,
            total=self._plan.total,
        )
        await self._board.send("on_trial_result", done)
        index = record.item.eval_index
        self._told[index] += 1
        evaluation = self._plan.evals[index]
        if self._told[index] == len(evaluation.stimuli) * evaluation.trials:
            complete = EvalComplete(eval=evaluation.planned, summary=self._tally.eval_summary(index))
            await self._board.send("on_eval_complete", complete)
