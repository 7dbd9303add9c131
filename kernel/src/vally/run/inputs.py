"""What graders and executors are given."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from vally.model.evalspec import Attachment, McpServer, ProviderConfig, Stimulus
    from vally.model.trajectory import Event, Trajectory
    from vally.processes.result import Completed
    from vally.run.judging import JudgeReply, JudgeRequest
    from vally.run.read_root import ReadRoot
    from vally.run.repo_snapshot import RepoSnapshot

C = TypeVar("C")
Magnitude = Literal["much-better", "slightly-better", "equal", "slightly-worse", "much-worse"]


class Process(Protocol):
    """A running child; closing `stdin` ends its input."""

    pid: int
    stdin: Any
    stdout: Any
    stderr: Any

    async def wait(self) -> Completed: ...

    async def terminate(self) -> None: ...

    async def kill(self) -> None: ...


class ProcessRunner(Protocol):
    """Starts processes so that none can outlive its trial; a backend may put a sandbox in front of them.

    `network` is that of the processes: that of this machine, a way to their model only, or none. `reach_provider` takes
    a resolved provider that they are to ask, and returns it as they reach it: address and key may be others, and what
    is added on the way, such as headers, is left out. It raises `ExecutorError` when they cannot; what goes wrong
    later, and the user should know, goes to `warn`.
    """

    network: Literal["host", "model", "none"]

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]: ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_bytes: int = 10 * 2**20,
    ) -> Completed: ...

    async def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Process: ...

    def mark(self, name: str, value: str) -> None: ...

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig: ...

    async def kill_all(self, grace: float = 2.0) -> int: ...


class JudgeClient(Protocol):
    """The judge of one grader entry behind cache, limits and accounting.

    `judge` sees to time limit and reminders; it raises `JudgeError`. `supports_files` tells whether the judge can read
    evidence files. `model_for` and `effort_for` give what an entry gets that configures this or None. The optional
    mapping `result_metadata` goes into the metadata of all results of graders that may ask this judge.
    """

    async def judge(self, request: JudgeRequest) -> JudgeReply: ...

    @property
    def supports_files(self) -> bool: ...

    def model_for(self, configured: str | None) -> str: ...

    def effort_for(self, configured: str | None) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderInput(Generic[C]):
    """What a grader sees of one trial.

    `trajectory` is the view narrowed by `turn` and `scope`, `full_trajectory` the whole. `files` reads the artifact
    directory and the workspace. `deadline` is a `time.monotonic()` value. `diff` is the unified diff of the view (the
    turn's, else the run's), or None with the reason in `diff_problem`. `repo` is the final workspace before any grader
    ran, for a config whose `evidence()` has `repo`. `warn` tells the user one line, each at most once per run.
    """

    trajectory: Trajectory
    full_trajectory: Trajectory
    stimulus: Stimulus
    config: C
    turn: int | None = None
    scope: str | Mapping[str, object] | None = None
    files: ReadRoot
    judge: JudgeClient | None = None
    runner: ProcessRunner
    env: Mapping[str, str] = field(default_factory=dict)
    spec_dir: Path
    run_dir: Path | None = None
    diff: str | None = None
    diff_problem: str | None = None
    repo: RepoSnapshot | None = None
    seed: int | None = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("vally.grader"))
    warn: Callable[[str], None] = lambda _: None
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareInput(Generic[C]):
    """Two trajectories of one stimulus."""

    stimulus: Stimulus
    baseline: Trajectory
    treatment: Trajectory
    config: C
    judge: JudgeClient | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """Treatment-relative outcome; `score` is +1, +0.4, 0, -0.4 or -1."""

    winner: Literal["baseline", "treatment", "tie"]
    magnitude: Magnitude
    score: float
    evidence: str
    criteria: tuple[Mapping[str, Any], ...] = ()
    errored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill offered to the agent; `path` is its SKILL.md inside the workspace."""

    name: str
    description: str
    path: Path
    raw_content: str
    frontmatter: Mapping[str, Any]
    file_references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnComplete:
    """The agent finished a conversation turn."""

    turn: int
    final: bool


class StopSignal:
    """Asks an executor to end its agent; `reason` is `timeout` or `cancelled` once set. The first reason stays."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._listeners: list[Callable[[str], object]] = []

    def set(self, reason: str) -> None:
        """Set the signal; must be called from the event loop's thread."""
        if self.reason is None:
            self.reason = reason
            for listener in tuple(self._listeners):
                listener(reason)

    @contextmanager
    def heard_by(self, listener: Callable[[str], object]) -> Iterator[None]:
        """Call `listener` with the reason once there is one, at once when it is there already; it must not block.

        Costs less than a task that waits.
        """
        self._listeners.append(listener)
        try:
            if self.reason is not None:
                listener(self.reason)
            yield
        finally:
            self._listeners.remove(listener)

    async def wait(self) -> str:
        """Return the reason once there is one."""
        import anyio

        if self.reason is None:
            event = anyio.Event()
            with self.heard_by(lambda _: event.set()):
                await event.wait()
        assert self.reason is not None
        return self.reason


class SimulatedUser(Protocol):
    """Writes further user messages after the scripted turns until it returns None."""

    async def next_message(self, events: Sequence[Event]) -> str | None: ...


async def _no_turn_hook(_: TurnComplete) -> None:
    return None


def _ignore(_: Any) -> None:
    return None


def _same(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """Everything an executor may use for one trial.

    `timeout_ms` bounds the whole agent part and `deadline` is the same as a `time.monotonic()` value.
    `max_agent_duration_ms` is a soft limit that the executor itself keeps. `env` is the complete environment of the
    trial's agent processes; `base_env` lacks the trial-specific part. `on_turn_complete` is awaited after each turn.
    `shared_dir` is a private directory of the run for what several trials share; None when there is none. `warn` puts a
    line on the record of the trial.
    """

    item_id: str
    trial_id: str
    work_dir: Path
    trial_dir: Path
    spec_dir: Path
    assets_dir: Path | None = None
    skills: tuple[Skill, ...] = ()
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    base_env: Mapping[str, str] = field(default_factory=dict)
    process_env: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    timeout_ms: int
    deadline: float
    max_agent_duration_ms: int | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    executor_config: object = None
    attachments: tuple[Attachment, ...] = ()
    simulated_user: SimulatedUser | None = None
    runner: ProcessRunner
    shared_runner: ProcessRunner | None = None
    shared_dir: Path | None = None
    stop: StopSignal = field(default_factory=StopSignal)
    session_log: Path | None = None
    trace_context: Mapping[str, str] = field(default_factory=dict)
    redact: Callable[[str], str] = _same
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("vally.executor"))
    on_turn_complete: Callable[[TurnComplete], Awaitable[None]] = _no_turn_hook
    on_event: Callable[[Event], None] = _ignore
    on_raw_event: Callable[[Mapping[str, object]], None] = _ignore
    warn: Callable[[str], None] = _ignore
