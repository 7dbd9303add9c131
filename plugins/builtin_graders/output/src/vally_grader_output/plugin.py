"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_output"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="output-contains",
        summary="the final answer has a literal text",
        factory=f"{_PACKAGE}.output_contains:OutputContains",
        config=f"{_PACKAGE}.contains_config:ContainsConfig",
        cost="low",
        hints=("contains",),
    )
    yield GraderSpec(
        name="output-not-contains",
        summary="the final answer lacks a literal text",
        factory=f"{_PACKAGE}.output_contains:OutputNotContains",
        config=f"{_PACKAGE}.contains_config:NotContainsConfig",
        cost="low",
    )
    yield GraderSpec(
        name="output-matches",
        summary="the final answer matches a regular expression",
        factory=f"{_PACKAGE}.output_matches:OutputMatches",
        config=f"{_PACKAGE}.matches_config:MatchesConfig",
        cost="free",
        hints=("regex",),
    )
    yield GraderSpec(
        name="output-not-matches",
        summary="the final answer does not match a regular expression",
        factory=f"{_PACKAGE}.output_matches:OutputNotMatches",
        config=f"{_PACKAGE}.matches_config:NotMatchesConfig",
        cost="free",
    )
    yield GraderSpec(
        name="transcript-contains",
        summary="some message of the agent has a literal text",
        factory=f"{_PACKAGE}.transcript_contains:TranscriptContains",
        config=f"{_PACKAGE}.contains_config:ContainsConfig",
        cost="free",
    )
    yield GraderSpec(
        name="transcript-not-contains",
        summary="no message of the agent has a literal text",
        factory=f"{_PACKAGE}.transcript_contains:TranscriptNotContains",
        config=f"{_PACKAGE}.contains_config:NotContainsConfig",
        cost="free",
    )
    yield GraderSpec(
        name="transcript-matches",
        summary="some message of the agent matches a regular expression",
        factory=f"{_PACKAGE}.transcript_matches:TranscriptMatches",
        config=f"{_PACKAGE}.matches_config:MatchesConfig",
        cost="free",
    )
    yield GraderSpec(
        name="transcript-not-matches",
        summary="no message of the agent matches a regular expression",
        factory=f"{_PACKAGE}.transcript_matches:TranscriptNotMatches",
        config=f"{_PACKAGE}.matches_config:NotMatchesConfig",
        cost="free",
    )
    yield GraderSpec(
        name="assistant-contains-tool-output",
        summary="a value that a tool returned is repeated in a later message of the agent",
        factory=f"{_PACKAGE}.tool_output_echo:ToolOutputEcho",
        config=f"{_PACKAGE}.tool_output_echo:ToolOutputEchoConfig",
        cost="free",
    )
