"""From what a backend says to the line that is written: one `TrialResult` per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally.model.results import NO_MODEL, ErrorInfo, JudgeUsage, Phases, TrialResult
from vally.run.calling import described

if TYPE_CHECKING:
    from pathlib import Path

    from vally.run.trial import ExportedFiles, Selection, TrialItem, TrialOutcome


@dataclass(slots=True)
class EmptyOutcome:
    """What is recorded of a trial of which its backend told nothing."""

    status: str
    error: ErrorInfo | None = None
    skip_reason: str | None = None
    trajectory: None = None
    grade: None = None
    retry_after_ms: None = None
    work_dir: None = None
    phases: Phases = field(default_factory=Phases)
    warnings: tuple[str, ...] = ()
    judge_usage: None = None

    async def export_workspace(self, selection: Selection, target: Path) -> ExportedFiles:
        """Nothing can be exported: there is no workspace."""
        from vally.errors import BackendError

        raise BackendError("workspace is not available")

    async def cleanup(self) -> Sequence[str]:
        """Nothing is left to remove."""
        return ()


def failed_outcome(error: Exception) -> Any:
    """An outcome for an exception that came out of a backend although none may: it is unusable as a whole."""
    message = f"backend failed: {described(error)}"
    return EmptyOutcome("error", error=ErrorInfo(message=message, code="backend-exception", phase="running"))


def skipped_outcome(reason: str) -> Any:
    """An outcome for a trial that was given up."""
    return EmptyOutcome("skipped", skip_reason=reason)


def checked_outcome(outcome: Any) -> Any:
    """The outcome as it is; raises `TypeError` for something else that a backend returned."""
    if getattr(outcome, "status", None) not in ("success", "error", "skipped") or not hasattr(outcome, "cleanup"):
        raise TypeError(f"{type(outcome).__name__} is not the outcome of a trial")
    return outcome


def trial_result(
    item: TrialItem,
    outcome: TrialOutcome,
    *,
    attempts: int,
    started_at: str,
    duration_ms: int,
    warnings: Sequence[str],
    judge_usage: JudgeUsage | None,
    backend: str,
    keep_workspace: bool,
) -> TrialResult:
    """The record of an item that ran; not yet redacted or cut."""
    error = outcome.error if outcome.status == "error" else None
    return TrialResult(
        **_identity(item),
        status=outcome.status,
        duration_ms=duration_ms,
        phases=outcome.phases,
        workspace_path=str(outcome.work_dir) if outcome.work_dir is not None and keep_workspace else None,
        trajectory=outcome.trajectory,
        grade_result=outcome.grade if outcome.status == "success" else None,
        error=_one_line(error.message) if error else None,
        error_info=error,
        skip_reason=outcome.skip_reason if outcome.status == "skipped" else None,
        attempts=attempts,
        started_at=started_at,
        warnings=list(dict.fromkeys(_one_line(text) for text in warnings)) or None,
        judge_usage=judge_usage,
        backend=backend,
    )


def unrecordable_result(item: TrialItem, result: TrialResult, error: Exception) -> TrialResult:
    """The record of an item whose result cannot be written, because of what an executor or a grader put into it."""
    message = f"the result cannot be recorded: {described(error)}"
    return TrialResult(
        **_identity(item),
        status="error",
        duration_ms=result.duration_ms,
        error=message,
        error_info=ErrorInfo(message=message, code="unrecordable-result", phase="capturing"),
        attempts=result.attempts,
        started_at=result.started_at,
        backend=result.backend,
    )


def skipped_result(item: TrialItem, reason: str) -> TrialResult:
    """The record of an item that never ran."""
    return TrialResult(**_identity(item), status="skipped", skip_reason=reason)


def _identity(item: TrialItem) -> dict[str, Any]:
    tags = {key: list(value) if isinstance(value, tuple) else value for key, value in item.stimulus.tags.items()}
    return {
        "run_id": item.run_id,
        "item_id": item.item_id,
        "eval_name": item.eval_name,
        "eval_file_path": item.eval_file_path,
        "variant": item.variant,
        "model": item.model or NO_MODEL,
        "stimulus": item.stimulus.name,
        "trial_index": item.trial_index,
        "total_trials": item.total_trials,
        "seed": item.seed,
        "tags": tags or None,
        **_experiment(item),
    }


def _experiment(item: TrialItem) -> dict[str, Any]:
    if item.experiment is None:
        return {}
    return {"experiment": dict(item.experiment), "shard_key": item.item_id}


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
