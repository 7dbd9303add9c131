"""`tool-call-count` and `step-count`: how many calls there were, and how many responses had one."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from vally import GraderInput, GraderResult, ToolCall, ToolPatterns, compile_regex, describe_grader_value, tool_calls
from vally_grader_metrics.budget import grade_count
from vally_grader_metrics.counts import CountConfig


class CallCountConfig(CountConfig):
    """The largest number allowed; only tools that match one of the patterns count."""

    tools: ToolPatterns = Field(default_factory=list)


def matching_calls(input: GraderInput[CallCountConfig]) -> list[ToolCall]:
    """Calls of the view whose tool counts."""
    tools = [compile_regex(pattern) for pattern in input.config.tools]
    calls = tool_calls(input.trajectory.events, input.full_trajectory.events)
    return [call for call in calls if not tools or any(tool.search(call.name) for tool in tools)]


class ToolCallCount:
    """Compares the number of calls with the limit."""

    keyword: ClassVar = "tool-call-count"

    def grade(self, input: GraderInput[CallCountConfig]) -> GraderResult:
        metrics = input.trajectory.metrics
        if input.config.tools:
            value: int | None = len(matching_calls(input))
        else:
            value = None if metrics is None else metrics.tool_call_count
        return grade_count(self.keyword, value, input.config.max, "tool calls")

    def default_name(self, config: CallCountConfig) -> str:
        target = " ".join([str(config.max), ", ".join(config.tools)])
        return f"{self.keyword} {describe_grader_value(target)}"

    def asserts_absence(self, config: CallCountConfig) -> bool:
        return True


class StepCount(ToolCallCount):
    """Compares the number of steps with the limit."""

    keyword = "step-count"

    def grade(self, input: GraderInput[CallCountConfig]) -> GraderResult:
        steps = {call.step for call in matching_calls(input)}
        return grade_count(self.keyword, len(steps), input.config.max, "steps")
