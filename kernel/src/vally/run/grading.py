"""Grading one trial: from the effective grader entries to one aggregate result."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.model.config import config_evidence
from vally.model.evalspec import Scoring
from vally.run.calling import thread_limiter
from vally.run.detaching import detached
from vally.run.entry_grading import EntryGrader, GradingFacts
from vally.run.entry_results import name_results
from vally.run.prepared_graders import prepare_entries
from vally.run.scoring import aggregate_grade
from vally.run.thread_batch import ThreadBatch

if TYPE_CHECKING:
    from pathlib import Path

    from vally.host import PluginHost
    from vally.model.evalspec import Stimulus
    from vally.model.results import GraderResult
    from vally.model.trajectory import Trajectory
    from vally.run.inputs import JudgeClient, ProcessRunner
    from vally.run.prepared_graders import PreparedEntry
    from vally.run.repo_snapshot import RepoSnapshot


def _ignore(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingRequest:
    """A trajectory and everything its graders may use.

    `env` is the environment of grader processes; `run_dir` resolves sidecar diffs; `diff_file` is a diff given by
    the user for a trajectory that recorded none; `on_warning` gets one-line warnings. With `owns_trajectory` nobody
    else uses the trajectory, also not what is nested in it, so that graders get it without a copy.
    """

    trajectory: Trajectory
    stimulus: Stimulus
    host: PluginHost
    runner: ProcessRunner
    spec_dir: Path
    scoring: Scoring = field(default_factory=Scoring)
    judge: JudgeClient | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    run_dir: Path | None = None
    diff_file: Path | None = None
    seed: int | None = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("vally.grader"))
    on_warning: Callable[[str], None] = _ignore
    owns_trajectory: bool = False


async def grade_entries(request: GradingRequest) -> GraderResult | None:
    """Grade a trajectory with the graders of its stimulus; None when it has none.

    Graders that need the workspace run one after another in list order, all others at the same time. The budget
    `scoring.timeout` covers all of them: what is unfinished when it ends becomes an error result. Never raises for
    what a grader does.
    """
    session = _session(request)
    if session is None:
        return None
    await session.run()
    return session.grade()


def _session(request: GradingRequest) -> _Session | None:
    entries = prepare_entries(request.host, request.stimulus.graders, request.spec_dir, request.on_warning)
    if not entries:
        return None
    return _Session(request if request.owns_trajectory else _detached(request), entries)


def _detached(request: GradingRequest) -> GradingRequest:
    """The request with a trajectory of its own: the record keeps what the agent did, whatever a grader does to it."""
    if request.trajectory is None:
        return request
    return replace(request, trajectory=detached(request.trajectory))


class _Session:
    def __init__(self, request: GradingRequest, entries: list[PreparedEntry]) -> None:
        budget = request.scoring.timeout_ms
        deadline = None if budget is None else time.monotonic() + budget / 1000
        self._request = request
        self._entries = entries
        self._facts = GradingFacts(request, deadline)
        self._graders = [EntryGrader(self._facts, prepared) for prepared in entries]
        self._results: list[GraderResult | None] = [None] * len(entries)

    @property
    def is_direct(self) -> bool:
        """Whether plain calls are all it takes: no budget, no coroutine, no look at the workspace beforehand."""
        return self._facts.deadline is None and not any(
            prepared.calling == "async" or _wants_repo(prepared) for prepared in self._entries
        )

    def run_direct(self) -> None:
        """Call the graders one after another in this thread, which may hold an event loop or not."""
        for index, grader in enumerate(self._graders):
            value = grader.attempt()
            self._results[index] = anyio.run(grader.awaited, value) if inspect.isawaitable(value) else value

    async def run(self) -> None:
        """Run the graders, those that need the workspace one after another, the others at the same time."""
        deadline = self._facts.deadline
        remaining = float("inf") if deadline is None else max(0.0, deadline - time.monotonic())
        with anyio.CancelScope(deadline=anyio.current_time() + remaining) as scope:
            self._facts.limiter = thread_limiter()
            # Graders that run commands may change the workspace, so it is looked at first.
            self._facts.repo = await self._snapshot()
            await self._run_all()
        if scope.cancelled_caught:
            await self._kill_processes()

    async def _kill_processes(self) -> None:
        # Cancelled graders killed their own children; this ends what those had left behind.
        with anyio.CancelScope(shield=True):
            await self._request.runner.kill_all()

    async def _snapshot(self) -> RepoSnapshot | None:
        if not any(_wants_repo(prepared) for prepared in self._entries):
            return None
        if self._request.trajectory is None:
            return None
        from vally.run.repo_snapshot import take_snapshot

        return await anyio.to_thread.run_sync(
            take_snapshot, self._request.trajectory, abandon_on_cancel=True, limiter=self._facts.limiter
        )

    async def _run_all(self) -> None:
        free = [index for index, prepared in enumerate(self._entries) if not prepared.needs_workspace]
        in_order = [index for index, prepared in enumerate(self._entries) if prepared.needs_workspace]
        in_threads = [index for index in free if self._entries[index].calling == "thread"]
        others = [index for index in free if self._entries[index].calling == "async"]
        values = {index: self._graders[index].attempt() for index in free if self._entries[index].calling == "here"}
        if not (in_order or others) and not any(inspect.isawaitable(value) for value in values.values()):
            self._results_of(values)
            await self._run_in_threads(in_threads)
            return
        async with anyio.create_task_group() as group:
            for index, value in values.items():
                group.start_soon(self._settle, index, value)
            for index in others:
                group.start_soon(self._run_one, index)
            group.start_soon(self._run_in_order, in_order)
            await self._run_in_threads(in_threads)

    def _results_of(self, values: Mapping[int, Any]) -> None:
        for index, value in values.items():
            self._store(index, value)

    def _store(self, index: int, result: GraderResult) -> None:
        self._results[index] = result

    async def _settle(self, index: int, value: Any) -> None:
        self._store(index, await self._graders[index].awaited(value) if inspect.isawaitable(value) else value)

    async def _run_one(self, index: int) -> None:
        self._store(index, await self._graders[index].result())

    async def _run_in_order(self, indexes: Sequence[int]) -> None:
        for in_thread, group in groupby(indexes, key=lambda index: self._entries[index].calling == "thread"):
            if in_thread:
                await self._run_in_threads(list(group), in_order=True)
                continue
            for index in group:
                await self._run_one(index)

    async def _run_in_threads(self, indexes: Sequence[int], *, in_order: bool = False) -> None:
        if not indexes:
            return
        assert self._facts.limiter is not None
        graders = [(index, self._graders[index]) for index in indexes]
        await ThreadBatch(graders, self._store, self._facts.limiter, in_order=in_order).run()

    def grade(self) -> GraderResult:
        """The aggregate of what is finished; what is not becomes an error."""
        request, entries = self._request, self._entries
        text = request.scoring.timeout_text or f"{request.scoring.timeout_ms}ms"
        results = [
            result or grader.unfinished(f"Grading timed out after {text}")
            for grader, result in zip(self._graders, self._results, strict=True)
        ]
        name_results(results, entries)
        return aggregate_grade(
            results,
            [prepared.entry for prepared in entries],
            weights=request.scoring.weights,
            stimulus_name=request.stimulus.name,
            trajectory_id=request.trajectory.id,
        )


def _wants_repo(prepared: PreparedEntry) -> bool:
    return "repo" in config_evidence(prepared.config)


async def agrade_trajectory(
    trajectory: Trajectory,
    graders: list[Mapping[str, Any]],
    *,
    stimulus: Stimulus | None = None,
    scoring: Scoring | None = None,
    host: PluginHost | None = None,
    judge: JudgeClient | None = None,
    run_dir: Path | None = None,
) -> GraderResult:
    """Grade one trajectory with grader entries (mappings as in YAML); the async form of `grade_trajectory`."""
    from vally.run.library import library_request

    request = library_request(
        trajectory, graders, stimulus=stimulus, scoring=scoring, host=host, judge=judge, run_dir=run_dir
    )
    return await _library_grade(request)


async def _library_grade(request: GradingRequest) -> GraderResult:
    try:
        result = await grade_entries(request)
    finally:
        with anyio.CancelScope(shield=True):
            await request.runner.kill_all()
    if result is None:
        raise ValueError("graders must not be empty")
    return result


def grade_trajectory(
    trajectory: Trajectory,
    graders: list[Mapping[str, Any]],
    *,
    stimulus: Stimulus | None = None,
    scoring: Scoring | None = None,
    host: PluginHost | None = None,
    judge: JudgeClient | None = None,
    run_dir: Path | None = None,
) -> GraderResult:
    """Grade one trajectory with grader entries (mappings as in YAML) and return the aggregate of all.

    Without `host` the installed plugins are used; without `stimulus` one is made from `trajectory.stimulus`.
    `run_dir` resolves sidecar diffs. Raises `ValueError` for an empty list; a bad config is an error result.
    """

    from vally.run.library import library_request

    request = library_request(
        trajectory, graders, stimulus=stimulus, scoring=scoring, host=host, judge=judge, run_dir=run_dir
    )
    session = _session(request)
    if session is not None and session.is_direct:
        # Nothing has to be cancelled or awaited, so an event loop would only cost time.
        session.run_direct()
        return session.grade()

    async def run() -> GraderResult:
        return await _library_grade(request)

    return anyio.run(run)
