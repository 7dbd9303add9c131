"""From what a backend says to the line that is written: one `TrialResult` per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally.model.results import NO_MODEL, ErrorInfo, JudgeUsage, Phases, TrialResult

if TYPE_CHECKING:
    from pathlib import Path

    from vally.run.trial import ExportedFiles, Selection, TrialItem, TrialOutcome


@dataclass(slots=True)
class FailedOutcome:
    """What is recorded when a backend raises although it may not: the backend as a whole is unusable."""

    error: ErrorInfo
    status: str = "error"
    trajectory: None = None
    grade: None = None
    skip_reason: None = None
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
    """An outcome for an exception that came out of a backend."""
    text = " ".join(str(error).split())
    message = f"backend failed: {type(error).__name__}: {text}"
    return FailedOutcome(ErrorInfo(message=message, code="backend-exception", phase="running"))


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
    }


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
