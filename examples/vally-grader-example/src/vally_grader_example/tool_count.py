"""`tool-count`: how often the agent called tools."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from vally import Config, GraderInput, GraderResult


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


class ToolCount:
    """See `vally.Grader`."""

    def grade(self, input: GraderInput[ToolCountConfig]) -> GraderResult:
        """Pass when the count is in range."""
        count = sum(item.type == "tool_call" for item in input.trajectory.events)
        config = input.config
        enough = config.min is None or count >= config.min
        few_enough = config.max is None or count <= config.max
        return GraderResult.verdict(enough and few_enough, f"{count} tool calls (expected {_range(config)})")

    def default_name(self, config: ToolCountConfig) -> str:
        """Name the range, so that two entries differ."""
        return f"tool-count {_range(config)}"

    def asserts_absence(self, config: ToolCountConfig) -> bool:
        """Without a minimum, an agent that calls nothing passes."""
        return not config.min


def _range(config: ToolCountConfig) -> str:
    if config.min is None:
        return f"at most {config.max}"
    return f"at least {config.min}" if config.max is None else f"{config.min} to {config.max}"
