"""Grader results, trial results and run summaries: the lines of `results.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from vally.model.trajectory import Cost, RecordError, RecordModel, Trajectory, load_model, load_trajectory

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
    def error(
        cls, evidence: str, *, kind: str = "exception", message: str | None = None, **fields: Any
    ) -> GraderResult:
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
    """One line of `results.jsonl`: what became of one planned item. Only older records have no `model`."""

    or_null = frozenset({"model", "workspace_path", "trajectory", "grade_result"})

    type: Literal["trial-result"] = "trial-result"
    run_id: str
    item_id: str
    eval_name: str
    eval_file_path: str
    variant: str = MAIN_VARIANT
    model: str | None = NO_MODEL
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

    or_null = frozenset({"stop_reason"})

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


UNKNOWN = "(unknown)"
"""Stands for the parts of an item id that an older record does not tell."""

_STATUSES = {"success": "success", "ok": "success", None: "success", "error": "error", "skipped": "skipped"}


def ordered_record(cls: type[RecordModel], record: Mapping[str, Any]) -> dict[str, Any]:
    """The same record with its known keys in table order and the others behind them."""
    known = [field.alias or name for name, field in cls.model_fields.items()]
    ordered = {key: record[key] for key in known if key in record}
    return ordered | {key: value for key, value in record.items() if key not in ordered}


def add_warnings(record: Mapping[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """A copy of a trial record with further `warnings`, each of them once."""
    texts = [*(record.get("warnings") or ()), *warnings]
    return ordered_record(TrialResult, {**record, "warnings": list(dict.fromkeys(texts))})


def load_grade(value: object, pointer: str = "") -> GraderResult:
    """Read a grader result or a trial's `gradeResult`, older shapes included. Raises `RecordError`."""
    return load_model(GraderResult, _grade_fields(value, pointer), pointer)


def _grade_fields(value: object, pointer: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(pointer, "must be an object")
    fields = dict(value)
    if not isinstance(fields.get("passed"), bool):
        raise RecordError(f"{pointer}/passed", "must be true or false")
    if not _filled(fields.get("name")):
        fields["name"] = fields["graderType"] if _filled(fields.get("graderType")) else "grader"
    if not isinstance(fields.get("evidence"), str):
        message = fields.get("message")
        fields["evidence"] = message if isinstance(message, str) else ""
    score = fields.get("score")
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        fields["score"] = 1.0 if fields["passed"] else 0.0
    if isinstance(fields.get("details"), list):
        fields["details"] = [
            _grade_fields(detail, f"{pointer}/details/{index}") for index, detail in enumerate(fields["details"])
        ]
    return fields


def _filled(value: object) -> bool:
    return isinstance(value, str) and value != ""


def load_trial_result(value: object, *, trial_index: int = 0, total_trials: int = 1) -> TrialResult:
    """Read a line of `results.jsonl` or a legacy outcome; index and total stand in for missing ones.

    Raises `RecordError` for what is neither. Missing names are empty, a missing model is None.
    """
    if not isinstance(value, Mapping) or value.get("type", "trial-result") != "trial-result":
        raise RecordError("", "is not a trial result")
    if "type" not in value and "trajectory" not in value:
        raise RecordError("", "has neither a type nor a trajectory")
    return load_model(TrialResult, _trial_fields(value, trial_index, total_trials))


def _trial_fields(value: Mapping[str, Any], trial_index: int, total_trials: int) -> dict[str, Any]:
    known = {field.alias or name for name, field in TrialResult.model_fields.items()}
    fields = {key: item for key, item in value.items() if item is not None or key not in known}
    status = value.get("status")
    if status not in _STATUSES:
        raise RecordError("/status", f"must be success, error or skipped, not {status!r}")
    if fields.get("trajectory") is not None:
        fields["trajectory"] = load_trajectory(fields["trajectory"], "/trajectory")
    if fields.get("gradeResult") is not None:
        grade = load_grade(fields["gradeResult"], "/gradeResult")
        fields["gradeResult"] = grade if grade.details is not None else grade.model_copy(update={"details": []})
    fields["status"] = _STATUSES[status]
    fields["stimulus"] = stimulus_name(value)
    defaults = {
        "type": "trial-result",
        "runId": "",
        "evalName": "",
        "evalFilePath": "",
        "variant": MAIN_VARIANT,
        "model": None,
        "trialIndex": trial_index,
        "totalTrials": total_trials,
    }
    fields = {**defaults, **fields}
    if not _filled(fields.get("itemId")):
        fields["itemId"] = _item_id(fields)
    return fields


def _item_id(fields: Mapping[str, Any]) -> str:
    names = (fields["evalFilePath"], fields["variant"], fields["model"], fields["stimulus"])
    parts = [name if _filled(name) else UNKNOWN for name in names]
    return "::".join([*parts, f"trial-{fields['trialIndex']}"])


def stimulus_name(record: Mapping[str, Any]) -> str:
    """Name of the stimulus of a record, wherever older records keep it; `(unknown)` when nowhere."""
    trajectory, grade = record.get("trajectory"), record.get("gradeResult")
    candidates = [
        record.get("stimulus"),
        trajectory.get("stimulus") if isinstance(trajectory, Mapping) else None,
        grade.get("stimulusName") if isinstance(grade, Mapping) else None,
    ]
    names = (found.get("name") if isinstance(found, Mapping) else found for found in candidates)
    return next((name for name in names if isinstance(name, str) and name), UNKNOWN)


def load_run_summary(value: object) -> RunSummary:
    """Read a `run-summary` line; older ones may lack `evals`. Raises `RecordError`."""
    if not isinstance(value, Mapping) or value.get("type") != "run-summary":
        raise RecordError("", "is not a run summary")
    defaults = {"runId": "", "passed": False, "startedAt": "", "completedAt": ""}
    return load_model(RunSummary, {**defaults, **value})
