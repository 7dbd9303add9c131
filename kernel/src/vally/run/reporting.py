"""Events that reporters get, in the order in which things happen; all text in them is redacted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from vally.model.evalspec import Diagnostic
    from vally.model.results import EvalSummary, RunSummary, TrialResult
    from vally.run.trial import TrialItem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStimulus:
    """A stimulus of an eval as planned; `line` is where it stands in its file."""

    name: str
    line: int | None
    grader_count: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEval:
    """One eval x variant x model of the plan; `source` is the absolute path of its file."""

    index: int
    name: str
    eval_file_path: str
    variant: str
    model: str
    executor: str
    judge_model: str
    threshold: float | None
    stimuli: tuple[PlannedStimulus, ...]
    skills: tuple[str, ...] = ()
    source: Path | None = None
    pass_rate: float | None = None

    def item_id(self, stimulus: str, trial_index: int) -> str:
        """Id of the item of a trial (0-based), as in its record."""
        return f"{self.eval_file_path}::{self.variant}::{self.model}::{stimulus}::trial-{trial_index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of the command that reporters care about; `flags` holds those that the records of reporters name."""

    output: Literal["text", "json", "jsonl"] = "text"
    verbose: bool = False
    quiet: bool = False
    progress: Literal["live", "plain", "none"] = "plain"
    color_stdout: bool = False
    color_stderr: bool = False
    skip_grade: bool = False
    require_pass: bool = False
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """A run begins; `run_dir` exists. `suites` maps the chosen suites to their metadata.

    `backend` names where trials run; None where that is not known, as when recorded trials are graded.
    `kind` names the kind of the run, such as `eval`. `variant_dirs` maps variants to the directories with their
    records when each has its own; it is empty when `results.jsonl` lies in `run_dir`.
    """

    run_id: str
    kind: str = "eval"
    variant_dirs: Mapping[str, Path] = field(default_factory=dict)
    evals: tuple[PlannedEval, ...]
    total_items: int
    workers: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    backend: str | None = None
    version: str
    run_dir: Path
    run_dir_display: str
    started_at: str
    options: RunOptions = field(default_factory=RunOptions)
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process, such as those of CI systems; a reporter writes down no value that may be a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStart:
    """A worker took an item."""

    item: TrialItem


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPhase:
    """An item entered a phase."""

    item_id: str
    phase: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDone:
    """An item has its final record, already on disk as `line`. `passed` is None without a verdict.

    `completed` counts finished items, this one included, of `total`.
    """

    item: TrialItem
    result: TrialResult
    line: bytes = b""
    passed: bool | None
    completed: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """Findings about files or the run."""

    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalComplete:
    """One eval x variant x model is finished."""

    eval: PlannedEval
    summary: EvalSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComplete:
    """The run is over.

    `artifacts` maps labels to paths written so far, in order. `line` is that of the summary; it is empty when each
    variant has a results file, and so a summary, of its own.
    """

    summary: RunSummary
    line: bytes = b""
    status: Literal["completed", "cancelled"]
    run_dir: Path
    run_dir_display: str
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    exit_code: int = 0
    lines: tuple[str, ...] = ()
    """Closing notes, such as a reporter that was disabled."""
