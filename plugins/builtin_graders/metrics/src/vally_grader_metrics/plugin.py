"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_metrics"


# Keyword, what it checks, implementation, and the constraint that it stands for.
_COUNTS = (
    ("token-budget", "input and output tokens stay within a budget", "TokenBudget", "max_tokens"),
    ("turn-count", "the number of the agent's responses stays within a budget", "TurnCount", "max_turns"),
    ("error-count", "the number of errors stays within a budget", "ErrorCount", None),
)
_CALL_COUNTS = (
    ("tool-call-count", "the number of tool calls stays within a budget", "ToolCallCount"),
    ("step-count", "the number of responses with tool calls stays within a budget", "StepCount"),
)


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    for name, summary, factory, constraint in _COUNTS:
        yield GraderSpec(
            name=name,
            summary=summary,
            factory=f"{_PACKAGE}.counts:{factory}",
            config=f"{_PACKAGE}.counts:CountConfig",
            cost="free",
            blocking=False,
            constraints={} if constraint is None else {constraint: "max"},
        )
    for name, summary, factory in _CALL_COUNTS:
        yield GraderSpec(
            name=name,
            summary=summary,
            factory=f"{_PACKAGE}.call_counts:{factory}",
            config=f"{_PACKAGE}.call_counts:CallCountConfig",
            cost="free",
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
