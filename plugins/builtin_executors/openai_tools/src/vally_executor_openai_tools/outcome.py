"""What a tool call gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The text that the model gets. `exit_code` is that of a command; a failed call has an `error_code`."""

    text: str
    success: bool = True
    exit_code: int | None = None
    error_code: str | None = None


class ToolError(Exception):
    """A call cannot be done; the message is for the model."""

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
