"""`no-errors`: neither the agent nor one of its tools failed."""

from __future__ import annotations

from vally import Config, Event, GraderInput, GraderResult


class NoErrorsConfig(Config):
    """`allow_tool_failures`: tool calls may fail, as long as the session itself has no error."""

    allow_tool_failures: bool = False


class NoErrors:
    """See `vally.Grader`."""

    def grade(self, input: GraderInput[NoErrorsConfig]) -> GraderResult:
        """Pass when no event of the view is an error."""
        errors = [item for item in input.trajectory.events if _is_error(item, input.config)]
        if not errors:
            return GraderResult.verdict(True, "no errors")
        return GraderResult.verdict(False, f"{len(errors)} errors, the first: {_text(errors[0])}")

    def asserts_absence(self, config: NoErrorsConfig) -> bool:
        """An agent that does nothing makes no error."""
        return True


def _is_error(item: Event, config: NoErrorsConfig) -> bool:
    if item.type == "error":
        return True
    return item.type == "tool_result" and item.data.get("success") is False and not config.allow_tool_failures


def _text(item: Event) -> str:
    if item.type == "error":
        return str(item.data.get("message", "error"))
    return f"{item.data.get('toolName', 'a tool')} failed"
