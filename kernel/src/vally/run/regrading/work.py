"""From recorded documents to graded trials, several at a time and reported in the order of the input."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio

from vally.errors import ExecutorError, VallyError
from vally.model.results import NO_MODEL
from vally.model.trajectory import RecordError, Trajectory
from vally.run.calling import described, invoke, raise_thread_limit
from vally.run.imports.atif import import_atif
from vally.run.imports.imported import with_turns
from vally.run.imports.session import import_session_file
from vally.run.regrading.recorded import Places, located, recorded_trajectory
from vally.run.trial import GradeOutcome, GradeRequest, TrialItem, TrialOptions

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Stimulus
    from vally.model.results import GraderResult
    from vally.records import Backend
    from vally.run.judges import JudgePool
    from vally.run.redaction import Redactor
    from vally.run.regrading.matching import Match
    from vally.run.regrading.source import Document
    from vally.run.results_file import ReadProblem

WINDOW = 64
"""How far a worker may be ahead of the oldest trial that is still being graded: what is finished waits in memory."""


@dataclass(slots=True)
class Assigned:
    """A document with the stimulus that it is graded against.

    `index` counts the trials of its stimulus and model from 0, of which there are `total`. `trajectory` is that of an
    imported document.
    """

    document: Document
    match: Match
    index: int = 0
    total: int = 1
    trajectory: Trajectory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """What became of a document. `error` says why it has no grade although it should.

    `record` is the record without trajectory and grade, empty for an imported document.
    """

    assigned: Assigned
    item: TrialItem
    record: Mapping[str, Any] = field(default_factory=dict)
    trajectory: Trajectory | None = None
    grade: GraderResult | None = None
    error: str | None = None


class NoExecutor:
    """Stands where backends expect an executor: nothing is run here."""

    async def execute(self, *_: Any) -> Trajectory:
        """Refuse."""
        raise ExecutorError("recorded trajectories are graded, no agent is run", code="unsupported-option")

    async def shutdown(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTools:
    """What grading needs beside the documents. `warn` gets where, what and a code; `fail` likewise for errors."""

    host: PluginHost
    backend: Backend
    judges: JudgePool
    redactor: Redactor
    environ: Mapping[str, str]
    places: Places = field(default_factory=Places)
    workers: int = 5
    warn: Callable[[str, str, str], None]
    fail: Callable[[str, str, str], None]


class Regrading:
    """Grades assigned documents; `items` has the item of each stimulus, `emit` gets the results in their order."""

    def __init__(
        self,
        tools: GradingTools,
        items: Mapping[Match, TrialItem],
        assigned: Sequence[Assigned],
        emit: Callable[[Graded], Awaitable[None]],
    ) -> None:
        self._tools = tools
        self._items = items
        self._assigned = assigned
        self._emit = emit
        self._waiting: dict[int, Graded | None] = {}
        self._next = 0
        self._moved = anyio.Event()
        self._emitting = anyio.Lock()

    async def run(self) -> None:
        """Grade all. Raises what `emit` raises."""
        raise_thread_limit()
        positions = iter(range(len(self._assigned)))
        failures: list[Exception] = []

        async def work() -> None:
            try:
                for position in positions:
                    while position - self._next >= WINDOW:
                        await self._moved.wait()
                    await self._done(position, await self._graded(self._assigned[position]))
            except Exception as error:
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for _ in range(max(1, min(self._tools.workers, len(self._assigned)))):
                group.start_soon(work)
        if failures:
            raise failures[0]

    async def _done(self, position: int, graded: Graded | None) -> None:
        self._waiting[position] = graded
        async with self._emitting:
            while self._next in self._waiting:
                ready = self._waiting.pop(self._next)
                if ready is not None:
                    await self._emit(ready)
                self._next += 1
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    async def _graded(self, assigned: Assigned) -> Graded | None:
        """The grade of a document; None for one that turns out to be malformed, which is reported then."""
        document, item = assigned.document, self._item(assigned)
        record: Mapping[str, Any] = {}
        try:
            if assigned.trajectory is None:
                record = document.value()
            trajectory = None if document.status is not None else self._trajectory(assigned, record)
        except RecordError as error:
            self._tools.fail(document.where, error.message, "bad-record")
            return None
        except (OSError, ValueError) as error:
            self._tools.fail(document.where, f"cannot be read again: {error}", "bad-record")
            return None
        item = replace(item, seed=_seed(record))
        graded = Graded(assigned=assigned, item=item, record=_small(record), trajectory=trajectory)
        if document.status is not None:
            return graded
        if trajectory is None:
            return replace(graded, error="the record holds no trajectory")
        return await self._judged(graded, trajectory)

    def _item(self, assigned: Assigned) -> TrialItem:
        item, document = self._items[assigned.match], assigned.document
        return replace(
            item,
            variant=document.variant,
            model=document.model,
            item_id=f"{item.eval_file_path}::{document.variant}::{document.model or NO_MODEL}"
            f"::{item.stimulus.name}::trial-{assigned.index}",
            trial_index=assigned.index if document.trial_index is None else document.trial_index,
            total_trials=document.total_trials or assigned.total,
        )

    def _trajectory(self, assigned: Assigned, record: Mapping[str, Any]) -> Trajectory | None:
        document, places = assigned.document, self._tools.places
        run_dir = places.run_dir_of(document)
        if assigned.trajectory is not None:
            return located(assigned.trajectory, places, run_dir)
        if record.get("trajectory") is None:
            return None

        def warn(text: str, code: str) -> None:
            self._tools.warn(document.where, text, code)

        return located(recorded_trajectory(record, run_dir, warn), places, run_dir)

    async def _judged(self, graded: Graded, trajectory: Trajectory) -> Graded:
        tools = self._tools
        request = GradeRequest(
            item=graded.item,
            trajectory=trajectory,
            options=TrialOptions(
                host=tools.host,
                executor=NoExecutor(),
                judge=tools.judges.client(graded.item.judge),
                process_env=tools.environ,
                redactor=tools.redactor,
            ),
            work_dir=tools.places.workspace,
            run_dir=tools.places.run_dir_of(graded.assigned.document),
            diff_file=tools.places.diff_file,
        )
        try:
            outcome = await invoke(tools.backend.grade_trial, request)
            if not isinstance(outcome, GradeOutcome):
                raise TypeError(f"{type(outcome).__name__} is not the outcome of a grading")
        except VallyError as problem:
            return replace(graded, error=problem.message)
        except Exception as problem:
            return replace(graded, error=f"the backend failed: {described(problem)}")
        return replace(graded, grade=outcome.grade, error=outcome.error.message if outcome.error is not None else None)


def _seed(record: Mapping[str, Any]) -> int | None:
    """What graders that draw were given when the trial ran, so that they draw the same again."""
    seed = record.get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def _small(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("trajectory", "gradeResult")}


def imported_trajectory(document: Document, work_dir: str) -> tuple[Trajectory, tuple[str, ...]]:
    """The trajectory of an ATIF or session document, not yet with the turns of a stimulus, and its warnings.

    `work_dir` is the workspace of a document that records none. Raises `VallyError` and `OSError`.
    """
    if document.format == "atif":
        imported = import_atif(document.value(), work_dir=work_dir)
        return imported.trajectory, imported.warnings
    source = document.source
    source.file.seek(0)
    problems: list[ReadProblem] = []
    path = None if source.path is None else str(source.path)
    imported = import_session_file(source.file, problems, path=path)
    trajectory = imported.trajectory
    if not trajectory.work_dir:
        trajectory = trajectory.model_copy(update={"work_dir": work_dir})
    return trajectory, imported.warnings


def with_stimulus(trajectory: Trajectory, stimulus: Stimulus) -> Trajectory:
    """An imported trajectory as one of a stimulus."""
    attributed = with_turns(trajectory, stimulus.turns)
    return attributed.model_copy(update={"stimulus": {**attributed.stimulus, "name": stimulus.name}})
