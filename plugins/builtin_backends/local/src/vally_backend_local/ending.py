"""How a trial ended when it did not end well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from vally import ErrorInfo, ExecutorError, Trajectory, TrialSkipped, VallyError
from vally_backend_local.failures import SetupError
from vally_backend_local.work import Stopped

CANCELLED = "cancelled"
BACKEND_EXCEPTION = "backend-exception"


@dataclass(frozen=True)
class Ending:
    """A trial that failed or was skipped; `trajectory` is what was seen until then."""

    status: Literal["error", "skipped"]
    error: ErrorInfo | None = None
    skip_reason: str | None = None
    retry_after_ms: int | None = None
    trajectory: Trajectory | None = None


def ending_of(error: Exception, phase: str) -> Ending:
    """Say what an exception makes of a trial that was in `phase`."""
    if isinstance(error, Stopped):
        return Ending("skipped", skip_reason=CANCELLED)
    if isinstance(error, TrialSkipped):
        return Ending("skipped", skip_reason=error.message, trajectory=error.trajectory)
    if isinstance(error, ExecutorError):
        info = _info(error, phase, error.code or "executor-exception", error.retryable, error.details)
        return Ending("error", info, retry_after_ms=error.retry_after_ms, trajectory=error.trajectory)
    if isinstance(error, SetupError):
        return Ending("error", _info(error, phase, error.code or "environment-setup", error.retryable, error.details))
    if isinstance(error, VallyError):
        return Ending("error", _info(error, phase, error.code or BACKEND_EXCEPTION))
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Ending("error", ErrorInfo(message=message, code=BACKEND_EXCEPTION, phase=phase))


def _info(error: VallyError, phase: str, code: str, retryable: bool = False, details: Any = None) -> ErrorInfo:
    return ErrorInfo(
        message=error.message, code=code, retryable=retryable, phase=phase, details=dict(details or {}) or None
    )
