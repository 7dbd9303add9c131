"""What passes between the run and a backend."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from vally.run.inputs import StopSignal

if TYPE_CHECKING:
    from pathlib import Path

    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic, ExecutorChoice, ProviderConfig, Scoring, Stimulus
    from vally.model.results import ErrorInfo, GraderResult, JudgeUsage, Phases
    from vally.model.trajectory import Event, Trajectory
    from vally.records import Executor, ExecutorSpec
    from vally.run.agent_network import AgentNetwork
    from vally.run.inputs import JudgeClient
    from vally.run.plan import Plan
    from vally.run.redaction import Redactor

Phase = Literal["preparing", "running", "capturing", "grading", "cleanup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """Which judge and model grade an item; entries may name models of their own."""

    provider: ProviderConfig | None = None
    model: str
    reasoning_effort: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceChoice:
    """Where the workspace of an item lies.

    `path` None means a temporary directory that is removed afterwards. `in_place` uses `path` as it is. `keep` leaves
    it there. `root` is the directory above all kept workspaces, whose record of them says what may be cleared; None
    means the parent of `path`.
    """

    path: Path | None = None
    root: Path | None = None
    in_place: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialItem:
    """One planned trial: immutable and JSON-able. `model` is None when none is set."""

    run_id: str
    item_id: str
    eval_name: str
    eval_file_path: str
    eval_index: int
    variant: str = "main"
    model: str | None = None
    stimulus: Stimulus
    trial_index: int
    total_trials: int
    executor: ExecutorChoice
    spec_dir: Path
    spec_path: Path
    project_root: Path
    scoring: Scoring
    judge: JudgeSettings
    timeout_ms: int
    max_agent_duration_ms: int | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    skills: tuple[Path, ...] = ()
    """Absolute directories of the skills offered: the declared ones, else those of `--skill-dir`."""
    work_dir: Path
    """Second base for relative MCP server commands."""
    workspace: WorkspaceChoice = field(default_factory=WorkspaceChoice)
    part: str = ""
    """Directory below the run directory that holds the records of the item; empty for the run directory itself."""
    segments: tuple[str, ...] = ()
    """Path below that directory: eval, stimulus, model, trial."""
    experiment: Mapping[str, Any] | None = None
    """What the record says about the experiment that the item belongs to."""


def _nothing(*_: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """What cannot travel with an item. `output_dir` is the trial's directory in the run directory (made on demand)."""

    host: PluginHost
    executor: Executor
    executor_config: object = None
    judge: JudgeClient | None = None
    skip_grade: bool = False
    output_dir: Path | None = None
    run_dir: Path | None = None
    session_log: Path | None = None
    process_env: Mapping[str, str] = field(default_factory=dict)
    shutdown_timeout_s: float = 30.0
    executor_record: ExecutorSpec | None = None
    redactor: Redactor
    on_phase: Callable[[Phase, str | None], None] = _nothing
    on_diagnostic: Callable[[Diagnostic], None] = _nothing
    on_event: Callable[[Event], None] = _nothing
    stop: StopSignal = field(default_factory=StopSignal)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("vally.trial"))

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to `on_event`; backends of other machines need not send what nobody hears."""
        return self.on_event is not _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to export of a workspace: everything, or files matching `include` and not `exclude`."""

    whole: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFiles:
    """Relative POSIX paths that were copied, and what was left out."""

    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class TrialOutcome(Protocol):
    """What became of a trial; `cleanup` is called once, when nobody needs the workspace any more.

    Two attributes are optional. `lost_attempts` is how often the trial was begun in vain where that could be seen by
    nobody but the backend, which began it again. `backend_name` is what the record calls the backend instead of the
    name of its record.
    """

    status: Literal["success", "error", "skipped"]
    trajectory: Trajectory | None
    grade: GraderResult | None
    error: ErrorInfo | None
    skip_reason: str | None
    retry_after_ms: int | None
    work_dir: Path | None
    phases: Phases
    warnings: tuple[str, ...]
    judge_usage: JudgeUsage | None

    async def export_workspace(self, selection: Selection, target: Path) -> ExportedFiles: ...

    async def cleanup(self) -> Sequence[str]:
        """Remove what the trial left; returns warnings, never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What backends, executors and judges may know of the run. `items` is the number of planned trials.

    `agent_network` is what the backend lets processes of agents reach. `plan` and `host` are those of the run, for
    backends that make things ready for whole evals; None where trials are run without a plan, or nothing is run.
    """

    run_id: str
    cache_dir: Path
    project_root: Path
    process_env: Mapping[str, str]
    items: int = 0
    workers: int = 1
    keep_workspaces: bool = False
    agent_network: AgentNetwork = "host"
    plan: Plan | None = None
    host: PluginHost | None = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("vally.backend"))
    on_warning: Callable[[str], None] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRequest:
    """A recorded trajectory to grade again where its workspace is.

    The trajectory is for this request alone, so that graders may get it as it is.
    """

    item: TrialItem
    trajectory: Trajectory
    options: TrialOptions
    work_dir: Path | None = None
    run_dir: Path | None = None
    diff_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOutcome:
    """Grade of a recorded trajectory."""

    grade: GraderResult | None
    error: ErrorInfo | None = None
    judge_usage: JudgeUsage | None = None
