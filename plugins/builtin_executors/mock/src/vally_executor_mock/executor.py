"""A scripted agent without process and network."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from vally import (
    AgentLimit,
    ExecutorError,
    ExecutorOptions,
    SimulatedUser,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TrialSkipped,
    TurnComplete,
    record_line,
)
from vally_executor_mock.changes import apply_changes
from vally_executor_mock.config import MockConfig
from vally_executor_mock.fixture import Fixture, Step, find_fixture, read_fixture

FIXTURES = ".mock-executor"


class MockExecutor:
    """Echoes each prompt, or does what the stimulus' fixture says."""

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Play the trial; see `Fixture` for what can be scripted."""
        fixture = _fixture(stimulus, options)
        return await _Session(stimulus, options, fixture).play()

    async def shutdown(self) -> None:
        """Nothing is held."""


class _Session:
    def __init__(self, stimulus: Stimulus, options: ExecutorOptions, fixture: Fixture | None) -> None:
        self._stimulus = stimulus
        self._options = options
        self._fixture = fixture
        # What a fixture says about skills is all there is to say.
        self._builder = TrajectoryBuilder(stimulus, options, executor="mock", skill_events=True)
        self._limit = AgentLimit(options)
        self._soft_deadline = _soft_deadline(options)

    async def play(self) -> Trajectory:
        prompts = list(self._stimulus.turns)
        turn, step = 0, Step()
        while turn < len(prompts):
            step = self._step(turn, prompts)
            if await self._stopped_during(step.delay_ms / 1000):
                return self._finished(self._builder.finish_stopped())
            self._act(step, prompts[turn], turn)
            in_time = turn < len(prompts) - 1 or await self._simulated(prompts)
            await self._options.on_turn_complete(TurnComplete(turn, turn == len(prompts) - 1))
            if not in_time:
                return self._finished(self._builder.finish_stopped())
            turn += 1
        return self._finished(self._scripted(step))

    def _step(self, turn: int, prompts: list[str]) -> Step:
        if self._fixture is None:
            return Step(output=prompts[turn])
        return self._fixture.step(turn, prompts)

    async def _stopped_during(self, seconds: float) -> bool:
        """Wait; true when a stop or the agent's own time limit came first."""
        if not seconds and self._options.stop.reason is None and self._soft_deadline == float("inf"):
            return False
        left = self._soft_deadline - time.monotonic()
        with anyio.move_on_after(min(seconds, left)):
            await self._options.stop.wait()
        return self._options.stop.reason is not None or left < seconds

    def _act(self, step: Step, prompt: str, turn: int) -> None:
        if step.skip:
            raise TrialSkipped(step.skip if isinstance(step.skip, str) else "skipped by the fixture")
        apply_changes(self._options.work_dir, step.files)
        self._speak(step, prompt, turn)
        if step.error is not None:
            raise ExecutorError(**step.error.model_dump(), trajectory=self._builder.finish("error"))

    def _speak(self, step: Step, prompt: str, turn: int) -> None:
        events = step.events or ()
        if not any(event.type == "user_message" and event.agent_id is None for event in events):
            names = [attachment.name for attachment in self._options.attachments if attachment.turn == turn]
            self._builder.user_message(prompt, attachments=names)
        for event in events:
            self._builder.replay(event)
        if step.events is None and not (step.error and step.output is None):
            self._answer(step.output or "")

    def _answer(self, text: str) -> None:
        self._builder.turn_start()
        if text:
            self._builder.assistant_message(text)
        self._builder.turn_end()

    async def _simulated(self, prompts: list[str]) -> bool:
        """Let a simulated user go on, when there is one; false when the time was over first."""
        user = self._options.simulated_user
        return user is None or await self._limit.run(partial(self._ask, user, prompts))

    async def _ask(self, user: SimulatedUser, prompts: list[str]) -> None:
        try:
            more = await user.next_message(self._builder.events)
        except ExecutorError as error:
            error.trajectory = self._builder.finish("error")
            raise
        if more is not None:
            prompts.append(more)

    def _scripted(self, last: Step) -> Trajectory:
        """The finished trajectory with what the fixture says about the whole of it."""
        whole = self._fixture or Step()
        trajectory = self._builder.finish(last.end_reason or whole.end_reason or "completed")
        changes: dict[str, Any] = {
            "metadata": {**trajectory.metadata, **(whole.metadata or {}), **(last.metadata or {})}
        }
        output = last.output if last.output is not None else whole.output
        if output is not None:
            changes["output"] = output
        metrics = last.metrics or whole.metrics
        if metrics:
            changes["metrics"] = _metrics(trajectory, metrics)
        return trajectory.model_copy(update=changes)

    def _finished(self, trajectory: Trajectory) -> Trajectory:
        path = self._options.session_log
        if path is None:
            return trajectory
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(record_line(event) for event in trajectory.events))
        return trajectory.model_copy(update={"session_path": str(path)})


def _metrics(trajectory: Trajectory, recorded: Mapping[str, Any]) -> Any:
    """Counts are those of the events; a recorded wall time and keys of the recording's own are kept."""
    assert trajectory.metrics is not None
    computed = trajectory.metrics.model_dump(by_alias=True)
    kept = {key: value for key, value in recorded.items() if key == "wallTimeMs" or key not in computed}
    return type(trajectory.metrics).model_validate({**computed, **kept})


def _soft_deadline(options: ExecutorOptions) -> float:
    if options.max_agent_duration_ms is None:
        return float("inf")
    return time.monotonic() + options.max_agent_duration_ms / 1000


def _fixture(stimulus: Stimulus, options: ExecutorOptions) -> Fixture | None:
    config = options.executor_config if isinstance(options.executor_config, MockConfig) else MockConfig()
    path = find_fixture(stimulus.name, [*_own_directory(config, options), options.work_dir / FIXTURES])
    if path is not None:
        return read_fixture(path)
    if config.strict:
        raise ExecutorError(f"no fixture for stimulus '{stimulus.name}' (strict is set)", code="executor-config")
    return None


def _own_directory(config: MockConfig, options: ExecutorOptions) -> list[Path]:
    if config.fixture_dir is None:
        return []
    directory = options.spec_dir / config.fixture_dir
    if not directory.is_dir():
        raise ExecutorError(f"fixtureDir '{config.fixture_dir}' is not a directory", code="executor-config")
    return [directory]
