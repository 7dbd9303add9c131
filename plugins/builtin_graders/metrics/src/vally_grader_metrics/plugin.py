"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_metrics"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="token-budget",
        summary="input and output tokens stay within a budget",
        factory=f"{_PACKAGE}.counts:TokenBudget",
        config=f"{_PACKAGE}.counts:CountConfig",
        cost="free",
        blocking=False,
        constraints={"max_tokens": "max"},
    )
    yield GraderSpec(
        name="tool-call-count",
        summary="the number of tool calls stays within a budget",
        factory=f"{_PACKAGE}.call_counts:ToolCallCount",
        config=f"{_PACKAGE}.call_counts:CallCountConfig",
        cost="free",
    )
    yield GraderSpec(
        name="step-count",
        summary="the number of responses with tool calls stays within a budget",
        factory=f"{_PACKAGE}.call_counts:StepCount",
        config=f"{_PACKAGE}.call_counts:CallCountConfig",
        cost="free",
    )
    yield GraderSpec(
        name="turn-count",
        summary="the number of the agent's responses stays within a budget",
        factory=f"{_PACKAGE}.counts:TurnCount",
        config=f"{_PACKAGE}.counts:CountConfig",
        cost="free",
        blocking=False,
        constraints={"max_turns": "max"},
    )
    yield GraderSpec(
        name="error-count",
        summary="the number of errors stays within a budget",
        factory=f"{_PACKAGE}.counts:ErrorCount",
        config=f"{_PACKAGE}.counts:CountConfig",
        cost="free",
        blocking=False,
    )
    yield GraderSpec(
        name="wall-time",
        summary="the elapsed time stays within a budget",
        factory=f"{_PACKAGE}.wall_time:WallTime",
        config=f"{_PACKAGE}.wall_time:WallTimeConfig",
        cost="free",
        blocking=False,
        constraints={"max_duration": "max"},
    )
    yield GraderSpec(
        name="custom-metrics",
        summary="values that the run wrote to a JSON file satisfy assertions",
        factory=f"{_PACKAGE}.custom_metrics:CustomMetrics",
        config=f"{_PACKAGE}.custom_metrics_config:CustomMetricsConfig",
        cost="low",
        requires_workspace=True,
    )
