"""Grader results, trial results and run summaries: the lines of `results.jsonl`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from vally.model.trajectory import Cost, RecordModel, Trajectory

NO_MODEL = "default-model"
MAIN_VARIANT = "main"


class GraderResult(RecordModel):
    """What one grader found; with `status: error` no verdict was reached and `label` is absent."""

    name: str = ""
    configured_name: str | None = None
    grader_type: str | None = None
    kind: str = "code"
    passed: bool
    score: float
    evidence: str = ""
    label: str | None = None
    status: str | None = None
    metadata: dict[str, Any] | None = None
    details: list[GraderResult] | None = None
    stimulus_name: str | None = None
    trajectory_id: str | None = None
    timestamp: str | None = None

    @classmethod
    def verdict(cls, passed: bool, evidence: str, *, score: float | None = None, **fields: Any) -> GraderResult:
        """A reached verdict; the label follows `passed`, the score is 1 or 0 unless given (0..1)."""
        value = (1.0 if passed else 0.0) if score is None else score
        label = "correct" if passed else "incorrect"
        return cls(passed=passed, score=value, evidence=evidence, label=label, **fields)

    @classmethod
    def error(cls, evidence: str, *, kind: str = "exception", message: str | None = None, **fields: Any) -> GraderResult:
        """No verdict. `kind` is one of config, regex-timeout, workspace, judge, program, deadline, exception."""
        metadata = {**(fields.pop("metadata", None) or {}), "error": {"kind": kind, "message": message or evidence}}
        return cls(
            passed=False, score=0.0, evidence=evidence, status="error", metadata=metadata, **_result_kind(fields)
        )


def _result_kind(fields: dict[str, Any]) -> dict[str, Any]:
    # `kind` names the error in `error()`, so the kind of the result travels as `result_kind`.
    if "result_kind" in fields:
        fields["kind"] = fields.pop("result_kind")
    return fields


class ErrorInfo(RecordModel):
    """Why a trial has no result."""

    message: str
    code: str
    retryable: bool = False
    phase: str = "running"
    details: dict[str, Any] | None = None


class Phases(RecordModel):
    """Wall time of the phases of the last attempt, in milliseconds."""

    setup_ms: int = 0
    agent_ms: int = 0
    capture_ms: int = 0
    grade_ms: int = 0


class JudgeUsage(RecordModel):
    """Tokens and cost of all judge calls of a trial."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    call_count: int = 0
    cost: Cost | None = None


class TrialResult(RecordModel):
    """One line of `results.jsonl`: what became of one planned item."""

    type: Literal["trial-result"] = "trial-result"
    run_id: str
    item_id: str
    eval_name: str
    eval_file_path: str
    variant: str = MAIN_VARIANT
    model: str = NO_MODEL
    stimulus: str
    trial_index: int
    total_trials: int
    status: Literal["success", "error", "skipped"]
    duration_ms: int = 0
    phases: Phases | None = None
    workspace_path: str | None = None
    trajectory: Trajectory | None = None
    grade_result: GraderResult | None = None
    error: str | None = None
    error_info: ErrorInfo | None = None
    skip_reason: str | None = None
    attempts: int | None = None
    started_at: str | None = None
    seed: int | None = None
    warnings: list[str] | None = None
    tags: dict[str, Any] | None = None
    judge_usage: JudgeUsage | None = None
    backend: str | None = None
    experiment: dict[str, Any] | None = None
    shard_key: str | None = None
    regraded: bool | None = None


class EvalSummary(RecordModel):
    """Verdict of one eval x variant x model; `reason` explains it in one line."""

    name: str
    eval_file_path: str
    variant: str = MAIN_VARIANT
    model: str = NO_MODEL
    passed: bool
    scoring_applied: bool = False
    overall_score: float | None = None
    threshold: float | None = None
    stimuli_run: int = 0
    stimuli_total: int = 0
    duration_ms: int = 0
    error: str | None = None
    partial: bool | None = None
    required_pass_rate: float | None = None
    reason: str = ""
    stats: dict[str, Any] | None = None


class Totals(RecordModel):
    """Counts over all trials of a run."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, alias_generator=to_camel)

    trials: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    flaky_stimuli: int = 0
    total_tokens: int = 0
    cost: list[dict[str, Any]] = Field(default_factory=list)


class RunSummary(RecordModel):
    """The last line of a finished `results.jsonl`."""

    type: Literal["run-summary"] = "run-summary"
    run_id: str
    status: Literal["completed", "cancelled"] = "completed"
    passed: bool
    had_execution_errors: bool = False
    partial: bool = False
    stop_reason: str | None = None
    started_at: str
    completed_at: str
    duration_ms: int = 0
    totals: Totals = Field(default_factory=Totals)
    jsonl_path: str | None = None
    evals: list[EvalSummary] = Field(default_factory=list)
