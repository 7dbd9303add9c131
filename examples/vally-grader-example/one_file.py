"""The two graders of this package as a single file: `vally eval --grader-plugin ./one_file.py`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from vally import Config, Event, GraderInput, GraderResult, grader


class NoErrorsConfig(Config):
    """`allow_tool_failures`: tool calls may fail, as long as the session itself has no error."""

    allow_tool_failures: bool = False


@grader("no-errors", config=NoErrorsConfig, cost="free")
class NoErrors:
    """The agent met no error."""

    def grade(self, input: GraderInput[NoErrorsConfig]) -> GraderResult:
        """Pass when no event of the view is an error."""
        allowed = input.config.allow_tool_failures
        errors = [_text(item) for item in input.trajectory.events if _is_error(item, allowed)]
        if not errors:
            return GraderResult.verdict(True, "no errors")
        return GraderResult.verdict(False, f"{len(errors)} errors, the first: {errors[0]}")

    def asserts_absence(self, config: NoErrorsConfig) -> bool:
        """An agent that does nothing makes no error."""
        return True


def _is_error(item: Event, tools_may_fail: bool) -> bool:
    failed_call = item.type == "tool_result" and item.data.get("success") is False
    return item.type == "error" or (failed_call and not tools_may_fail)


def _text(item: Event) -> str:
    name = item.data.get("toolName", "a tool")
    return str(item.data.get("message", "error")) if item.type == "error" else f"{name} failed"


class ToolCountConfig(Config):
    """Bounds of the count, both inclusive."""

    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def has_a_bound(self) -> Self:
        """At least one bound, in the right order."""
        if self.min is None and self.max is None:
            raise ValueError("'min' or 'max' is required")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("'min' must not be greater than 'max'")
        return self

    @property
    def text(self) -> str:
        """The range in words."""
        if self.min is None:
            return f"at most {self.max}"
        return f"at least {self.min}" if self.max is None else f"{self.min} to {self.max}"


@grader("tool-count", config=ToolCountConfig, cost="free")
class ToolCount:
    """The number of tool calls is in a range."""

    def grade(self, input: GraderInput[ToolCountConfig]) -> GraderResult:
        """Pass when the count is in range."""
        count = sum(item.type == "tool_call" for item in input.trajectory.events)
        config = input.config
        enough = config.min is None or count >= config.min
        few_enough = config.max is None or count <= config.max
        return GraderResult.verdict(enough and few_enough, f"{count} tool calls (expected {config.text})")

    def default_name(self, config: ToolCountConfig) -> str:
        """Name the range, so that two entries differ."""
        return f"tool-count {config.text}"

    def asserts_absence(self, config: ToolCountConfig) -> bool:
        """Without a minimum, an agent that calls nothing passes."""
        return not config.min
