"""What an error of a session means for its trial."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vally import ExecutorError

STDERR_BYTES = 4096
_STATUS_OF_TYPE = {"authentication": 401, "authorization": 403, "rate_limit": 429}
_LIMITS = frozenset({"context_limit", "session_limit"})
_REFUSALS = frozenset({"content_filter", "refusal"})
_TOO_LONG = re.compile(r"prompt budget|context (?:length|limit|window)", re.IGNORECASE)
# What the runtime says when the endpoint told an error within a stream, and went on doing so.
_NO_ANSWER = re.compile(r"failed to get response from the ai model", re.IGNORECASE)
_STDERR = "\nstderr: "


def infrastructure_error(data: Mapping[str, Any], *, transport: bool, acted: bool) -> ExecutorError | None:
    """The exception for a `session.error`; None when the agent itself failed, which is a trajectory.

    `transport` says that the last call of the model found no connection, `acted` that the agent did something before.
    """
    kind, message = data.get("errorType"), str(data.get("message") or "the session ended with an error")
    status = data.get("statusCode")
    if not isinstance(status, int):
        status = _STATUS_OF_TYPE.get(str(kind))
    if status is None:
        return ExecutorError.of_provider(message, status=None) if transport or _NO_ANSWER.search(message) else None
    error = ExecutorError.of_provider(message, status=status, retry_after_ms=_retry_after(data))
    return error if not acted or error.retryable or error.code == "provider-auth" else None


def end_reason_of_error(data: Mapping[str, Any]) -> str:
    """How a session ended that failed by itself."""
    kind = str(data.get("errorType"))
    # The runtime has no type for a prompt that does not fit into the model.
    if kind in _LIMITS or _TOO_LONG.search(str(data.get("message"))):
        return "budget"
    return "refused" if kind in _REFUSALS else "error"


def end_reason_of_answer(finish_reason: object) -> str:
    """How a session ended whose last answer ended for this reason."""
    if finish_reason in ("length", "max_tokens", "max_output_tokens"):
        return "budget"
    return "refused" if finish_reason in _REFUSALS else "completed"


def crash(error: BaseException, exit_code: int | None) -> ExecutorError:
    """The runtime ended; the SDK tells what it wrote to stderr, and its exit code when that was known already."""
    told, _, stderr = str(error).partition(_STDERR)
    reason = _reason(told, exit_code).replace("CLI process", "the Copilot runtime") or "the Copilot runtime ended"
    return ExecutorError(reason, code="agent-crashed", retryable=True, details=_details(stderr))


def start_failure(error: BaseException) -> ExecutorError:
    """The runtime did not get ready; the SDK has killed it by now, so that only what it tells counts."""
    told, _, stderr = str(error).partition(_STDERR)
    if "protocol version" in told.lower():
        return ExecutorError(f"the Copilot runtime does not fit the SDK: {told}", code="executor-unavailable")
    reason = _reason(told, None) or type(error).__name__
    return ExecutorError(
        f"the Copilot runtime did not start: {reason}",
        code="agent-start-failed",
        retryable=True,
        details=_details(stderr),
    )


def refusal_reason(error: BaseException) -> str:
    """Why the runtime, which is alive, does not do what it is asked: without what the SDK says of the protocol."""
    return str(error).rpartition("failed with message: ")[2] or type(error).__name__


def _reason(told: str, exit_code: int | None) -> str:
    # The SDK hears that the pipe is closed, and may look before the system knows the exit code.
    code = "" if exit_code is None else f" with code {exit_code}"
    told = told.replace(" with code None", code).replace("exited unexpectedly", f"exited{code}")
    return " ".join(told.split())


def _details(stderr: str) -> dict[str, object] | None:
    tail = stderr.strip()[-STDERR_BYTES:]
    return {"stderr": tail} if tail else None


def _retry_after(data: Mapping[str, Any]) -> int | None:
    for name, factor in (("retryAfterMs", 1), ("retryAfterSeconds", 1000), ("retryAfter", 1000)):
        value = data.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return round(value * factor)
    return None
