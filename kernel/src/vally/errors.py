"""The tree of errors that vally raises on purpose; every message is one line that a user can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vally.model.evalspec import Diagnostic
    from vally.model.trajectory import Cost, Trajectory

JudgeFailure = Literal["timeout", "malformed", "transport", "unavailable"]


class VallyError(Exception):
    """Root of the tree.

    `where` is a file position, an option or an item; `code` a diagnostic or error code; `hints` are indented lines
    that tell the reader what to do next.
    """

    def __init__(
        self, message: str, *, code: str | None = None, where: str | None = None, hints: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where
        self.hints = tuple(hints)


class UsageError(VallyError):
    """A wrong use of the command line; the program ends with exit code 2."""


class SpecError(VallyError):
    """A file that a user wrote cannot be used; `diagnostics` holds every finding, errors and warnings."""

    def __init__(self, message: str, *, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class PluginError(VallyError):
    """A plugin cannot be found, loaded or used."""


class BackendError(VallyError):
    """A backend as a whole cannot be used; raised from `prepare` before the run directory exists."""


class GraderError(VallyError):
    """A grader reached no verdict; becomes an error result with `metadata.error.kind` = `kind`."""

    def __init__(self, message: str, *, kind: str = "exception", details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details


class JudgeError(VallyError):
    """A judge gave no valid answer. `usage` and `cost` are what the failed call spent, when known."""

    def __init__(
        self, message: str, *, kind: JudgeFailure, usage: Mapping[str, int] | None = None, cost: Cost | None = None
    ) -> None:
        super().__init__(message)
        self.kind: JudgeFailure = kind
        self.usage = usage
        self.cost = cost


class ExecutorError(VallyError):
    """The agent could not be run; the trial becomes `status: error`.

    `code` is one of the table in the plugin chapter; `retry_after_ms` is a lower bound for the wait before a retry;
    `details` never holds secrets; `trajectory` is what was seen until then.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        details: Mapping[str, object] | None = None,
        trajectory: Trajectory | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.details = details
        self.trajectory = trajectory

    @classmethod
    def of_provider(
        cls,
        message: str,
        *,
        status: int | None,
        retry_after_ms: int | None = None,
        details: Mapping[str, object] | None = None,
        trajectory: Trajectory | None = None,
    ) -> ExecutorError:
        """The endpoint of the model failed with an HTTP status; None when there was no connection to it."""
        codes = {401: "provider-auth", 403: "provider-auth", 429: "provider-rate-limit"}
        return cls(
            message,
            code=codes.get(status or 0, "provider-error"),
            retryable=status is None or status in (408, 409, 425, 429) or status >= 500,
            retry_after_ms=retry_after_ms,
            details={**(details or {}), **({} if status is None else {"status": status})} or None,
            trajectory=trajectory,
        )

    @classmethod
    def of_mcp_server(cls, name: str, reason: str) -> ExecutorError:
        """An MCP server that the agent was given cannot be used."""
        return cls(f"MCP server '{name}' failed: {reason}", code="mcp-server-failed")


class TrialSkipped(VallyError):
    """The executor declines this trial, or the run was stopped; the message becomes `skipReason`."""

    def __init__(self, message: str, *, trajectory: Trajectory | None = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory


class ConfigInvalid(VallyError):
    """A config mapping does not fit its plugin; `problems` are worded as the spec does, at least one.

    `suggestions` maps some of the problems to what the user may have meant.
    """

    def __init__(self, name: str, problems: Sequence[str], suggestions: Mapping[str, str] | None = None) -> None:
        suggestions = suggestions or {}
        first = suggestions.get(problems[0])
        super().__init__(f"Invalid config for {name}: {problems[0]}", hints=() if first is None else (first,))
        self.name = name
        self.problems = tuple(problems)
        self.suggestions = suggestions
