"""What this package provides. Only records are made here; graders are imported when an eval uses them."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="no-errors",
        summary="the agent met no error",
        factory="vally_grader_example.no_errors:NoErrors",
        config="vally_grader_example.no_errors:NoErrorsConfig",
        cost="free",
        hints=("error-free",),
    )
    yield GraderSpec(
        name="tool-count",
        summary="the number of tool calls is in a range",
        factory="vally_grader_example.tool_count:ToolCount",
        config="vally_grader_example.tool_count:ToolCountConfig",
        cost="free",
        hints=("tool-calls-count",),
    )
