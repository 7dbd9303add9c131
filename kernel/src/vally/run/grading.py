"""Grading one trial: from the effective grader entries to one aggregate result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.model.config import config_evidence
from vally.model.evalspec import Scoring
from vally.run.calling import thread_limiter
from vally.run.detaching import detached
from vally.run.entry_grading import EntryGrader
from vally.run.entry_results import name_results
from vally.run.prepared_graders import prepare_entries
from vally.run.scoring import aggregate_grade

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
    the user for a trajectory that recorded none; `on_warning` gets one-line warnings.
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


async def grade_entries(request: GradingRequest) -> GraderResult | None:
    """Grade a trajectory with the graders of its stimulus; None when it has none.

    Graders that need the workspace run one after another in list order, all others at the same time. The budget
    `scoring.timeout` covers all of them: what is unfinished when it ends becomes an error result. Never raises for
    what a grader does.
    """
    entries = prepare_entries(request.host, request.stimulus.graders, request.spec_dir, request.on_warning)
    if not entries:
        return None
    if request.trajectory is not None:
        # The record keeps what the agent did, whatever a grader does to what it is given.
        request = replace(request, trajectory=detached(request.trajectory))
    session = _Session(request, entries)
    await session.run()
    results = session.finished_results()
    name_results(results, entries)
    return aggregate_grade(
        results,
        [prepared.entry for prepared in entries],
        weights=request.scoring.weights,
        stimulus_name=request.stimulus.name,
        trajectory_id=request.trajectory.id,
    )


class _Session:
    def __init__(self, request: GradingRequest, entries: list[PreparedEntry]) -> None:
        budget = request.scoring.timeout_ms
        self._deadline = None if budget is None else time.monotonic() + budget / 1000
        self._request = request
        self._entries = entries
        self._limiter = thread_limiter()
        self._results: list[GraderResult | None] = [None] * len(entries)
        self._repo: RepoSnapshot | None = None

    async def run(self) -> None:
        with anyio.CancelScope(deadline=self._scope_deadline()) as scope:
            # Graders that run commands may change the workspace, so it is looked at first.
            self._repo = await self._snapshot()
            async with anyio.create_task_group() as group:
                group.start_soon(self._run_serially)
                for index, prepared in enumerate(self._entries):
                    if not prepared.needs_workspace:
                        group.start_soon(self._run_one, index)
        if scope.cancelled_caught:
            await self._kill_processes()

    def _scope_deadline(self) -> float:
        if self._deadline is None:
            return float("inf")
        return anyio.current_time() + max(0.0, self._deadline - time.monotonic())

    async def _kill_processes(self) -> None:
        # Cancelled graders killed their own children; this ends what those had left behind.
        with anyio.CancelScope(shield=True):
            await self._request.runner.kill_all()

    async def _snapshot(self) -> RepoSnapshot | None:
        if not any("repo" in config_evidence(prepared.config) for prepared in self._entries):
            return None
        if self._request.trajectory is None:
            return None
        from vally.run.repo_snapshot import take_snapshot

        return await anyio.to_thread.run_sync(
            take_snapshot, self._request.trajectory, abandon_on_cancel=True, limiter=self._limiter
        )

    async def _run_serially(self) -> None:
        for index, prepared in enumerate(self._entries):
            if prepared.needs_workspace:
                await self._run_one(index)

    async def _run_one(self, index: int) -> None:
        grader = EntryGrader(self._request, self._entries[index], self._deadline, self._limiter, self._repo)
        self._results[index] = await grader.result()

    def finished_results(self) -> list[GraderResult]:
        text = self._request.scoring.timeout_text or f"{self._request.scoring.timeout_ms}ms"
        return [
            result or prepared.error(f"Grading timed out after {text}", kind="deadline")
            for prepared, result in zip(self._entries, self._results, strict=True)
        ]


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

    async def run() -> GraderResult:
        return await agrade_trajectory(
            trajectory, graders, stimulus=stimulus, scoring=scoring, host=host, judge=judge, run_dir=run_dir
        )

    return anyio.run(run)
