"""One trial from an empty workspace to a graded trajectory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Literal

import anyio
import anyio.to_thread

from vally import (
    GraderResult,
    GradingRequest,
    Phases,
    ProcessRunner,
    Trajectory,
    TrialItem,
    TrialOptions,
    VallyError,
    grade_entries,
)
from vally_backend_local.agent_part import AgentPart
from vally_backend_local.capture import TrialCapture
from vally_backend_local.cleaning import clean_up
from vally_backend_local.directories import TrialDirectories, make_directories
from vally_backend_local.ending import Ending, ending_of
from vally_backend_local.outcome import LocalOutcome
from vally_backend_local.preparing import Place, Runners, agent_environments, keeps_home, stage_grading
from vally_backend_local.shared import RunResources
from vally_backend_local.spare_directories import SpareDirectories
from vally_backend_local.work import until_stopped

MakeRunners = Callable[[Place, dict[str, str]], Runners]
Part = Literal["preparing", "running", "capturing", "grading"]
_MS = {"preparing": "setup_ms", "running": "agent_ms", "capturing": "capture_ms", "grading": "grade_ms"}


class Trial:
    """Runs one item; `run` is called once."""

    def __init__(
        self,
        resources: RunResources,
        make_runners: MakeRunners,
        shared_runner: ProcessRunner | None,
        item: TrialItem,
        options: TrialOptions,
    ) -> None:
        self._resources = resources
        self._make_runners = make_runners
        self._shared_runner = shared_runner
        self._item = item
        self._options = replace(options, process_env=resources.plain(options.process_env))
        self._id = str(uuid.uuid4())
        self._keep = item.workspace.keep or resources.context.keep_workspaces
        self._part: Part = "preparing"
        self._phases = Phases()
        self._warnings: list[str] = []
        self._directories: TrialDirectories | None = None
        self._place: Place | None = None
        self._runners: Runners | None = None
        self._agent: AgentPart | None = None
        self._capture: TrialCapture | None = None
        self._trajectory: Trajectory | None = None
        self._grade: GraderResult | None = None

    async def run(self) -> LocalOutcome:
        """Run and grade the item; raises nothing that an item can cause."""
        try:
            return await self._outcome()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._clean()
            raise

    async def _outcome(self) -> LocalOutcome:
        ending = await self._caught(self._prepare_and_execute)
        if ending is not None and ending.trajectory is not None:
            self._trajectory = ending.trajectory
        if self._trajectory is not None:
            await self._capture_changes(self._trajectory)
        if ending is None and self._item.stimulus.graders and not self._options.skip_grade:
            ending = await self._caught(self._grade_changes)
        if self._capture is not None:
            self._warnings += await self._capture.move_large_diffs()
        return self._finished(ending)

    def _finished(self, ending: Ending | None) -> LocalOutcome:
        return LocalOutcome(
            status="success" if ending is None else ending.status,
            trajectory=self._trajectory,
            grade=self._grade if ending is None else None,
            error=ending.error if ending else None,
            skip_reason=ending.skip_reason if ending else None,
            retry_after_ms=ending.retry_after_ms if ending else None,
            work_dir=self._directories.workspace if self._directories else None,
            phases=self._phases,
            warnings=tuple(self._warnings),
            clean=self._clean,
        )

    async def _caught(self, work: Callable[[], Awaitable[None]]) -> Ending | None:
        try:
            await work()
        except Exception as error:
            if not isinstance(error, VallyError):
                self._options.log.debug("trial %s failed", self._item.item_id, exc_info=error)
            return ending_of(error, self._part)
        return None

    @contextmanager
    def _timed(self, part: Part) -> Iterator[None]:
        self._part = part
        self._options.on_phase(part, None)
        began = time.monotonic()
        try:
            yield
        finally:
            setattr(self._phases, _MS[part], round((time.monotonic() - began) * 1000))

    async def _prepare_and_execute(self) -> None:
        with self._timed("preparing"):
            await self._wait_for_space()
            # What takes no time need not be watched.
            quick = self._is_quick() and self._options.stop.reason is None
            agent = await (self._prepare() if quick else until_stopped(self._options.stop, self._prepare))
        with self._timed("running"):
            self._trajectory = await agent.run()

    async def _wait_for_space(self) -> None:
        space, path = self._resources.free_space, self._item.workspace.path
        directories = [self._resources.temporary]
        if path is not None:
            directories.append(next(parent for parent in (path, *path.parents) if parent.is_dir()))
        for directory in directories:
            if not space.is_enough(directory):
                await until_stopped(self._options.stop, partial(space.wait, directory))

    def _is_quick(self) -> bool:
        stimulus = self._item.stimulus
        return not (
            self._item.workspace.path
            or self._item.skills
            or stimulus.merged_environment.stages_anything
            or self._resources.needs(self._options.host, stimulus).diff
            or hasattr(self._options.executor, "prepare")
        )

    async def _prepare(self) -> AgentPart:
        resources, options = self._resources, self._options
        directories = self._directories = await self._make_directories()
        place = self._place = Place(self._id, self._item, directories, self._item.stimulus.merged_environment)
        environments = agent_environments(place, options, resources)
        if keeps_home(options):
            resources.warn_once("'home: host' lets results depend on the user's own agent settings")
        runners = self._runners = self._make_runners(place, environments[0])
        agent = self._agent = AgentPart(place, options, resources, runners, environments, self._shared_runner)
        await agent.prepare()
        return agent

    async def _make_directories(self) -> TrialDirectories:
        choice, resources = self._item.workspace, self._resources
        token, spare = resources.scratch.token, resources.spare
        make = partial(make_directories, choice, resources.temporary, token, resources.kept, spare, keep=self._keep)
        # A fresh temporary directory costs less than a thread.
        return make() if choice.path is None else await anyio.to_thread.run_sync(make)

    def _spare(self) -> SpareDirectories | None:
        """Who may keep the directories: nobody once any process may have looked into them."""
        shared = self._shared_runner is not None and getattr(self._shared_runner, "used", True)
        known = shared or (self._runners is not None and self._runners.used)
        return None if known or self._item.workspace.path is not None else self._resources.spare

    async def _capture_changes(self, found: Trajectory) -> None:
        """Add to the trajectory what only the backend knows; trouble becomes a warning."""
        assert self._place is not None
        assert self._agent is not None
        with self._timed("capturing"):
            self._capture = TrialCapture(self._place, self._options, self._agent, found, self._resources.capturing)
            self._trajectory = self._capture.trajectory
            self._warnings += await self._capture.run()

    async def _grade_changes(self) -> None:
        with self._timed("grading"):
            await until_stopped(self._options.stop, self._graded)

    async def _graded(self) -> None:
        options, place, runners = self._options, self._place, self._runners
        assert place is not None
        assert runners is not None
        assert self._trajectory is not None
        try:
            await stage_grading(place, options, self._resources, runners.grade)
            if place.stages_grading_assets:
                self._trajectory.assets_dir = str(place.directories.assets)
            self._grade = await grade_entries(
                GradingRequest(
                    trajectory=self._trajectory,
                    stimulus=self._item.stimulus,
                    host=options.host,
                    runner=runners.grade,
                    spec_dir=self._item.spec_dir,
                    scoring=self._item.scoring,
                    judge=options.judge,
                    env=place.command_environment(options.process_env, self._item.stimulus.grading_environment.env),
                    run_dir=options.run_dir,
                    seed=self._item.seed,
                    on_warning=self._warnings.append,
                )
            )
        finally:
            await runners.kill_all()

    async def _clean(self) -> Sequence[str]:
        if self._directories is None:
            return ()
        return await clean_up(
            self._directories,
            self._runners,
            self._options,
            trial_id=self._id if self._agent is not None and self._agent.executor_knows else None,
            keep=self._keep,
            spare=self._spare(),
        )
