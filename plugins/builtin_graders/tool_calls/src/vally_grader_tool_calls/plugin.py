"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_tool_calls"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="tool-calls",
        summary="which tools were called, how and in which order, and which were not",
        factory=f"{_PACKAGE}.tool_calls:ToolCalls",
        config=f"{_PACKAGE}.tool_calls_config:ToolCallsConfig",
        cost="low",
        constraints={"expect_tools": "required", "reject_tools": "disallowed"},
    )
    yield GraderSpec(
        name="skill-invocation",
        summary="which skills were activated, and which were not",
        factory=f"{_PACKAGE}.skill_invocation:SkillInvocation",
        config=f"{_PACKAGE}.skill_invocation:SkillInvocationConfig",
        cost="free",
        blocking=False,
        constraints={"expect_skills": "required", "reject_skills": "disallowed"},
        hints=("skill-activation",),
    )
    yield GraderSpec(
        name="system-event",
        summary="which events of the session itself occurred, and which did not",
        factory=f"{_PACKAGE}.system_event:SystemEvent",
        config=f"{_PACKAGE}.system_event:SystemEventConfig",
        cost="free",
        blocking=False,
    )
