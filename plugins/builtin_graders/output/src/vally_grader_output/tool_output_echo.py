"""`assistant-contains-tool-output`: a value that only a tool could have supplied is repeated by the agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from vally import (
    Config,
    Event,
    GraderInput,
    GraderResult,
    OneOrMore,
    Pattern,
    Regex,
    Trajectory,
    compile_regex,
    describe_grader_value,
    result_text,
)

KEYWORD = "assistant-contains-tool-output"


class ToolOutputEchoConfig(Config):
    """`tools` are regular expressions over tool names, `pattern` one over result texts."""

    tools: Annotated[list[Pattern], OneOrMore]
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a matching tool; `position` is that of its event in the view."""

    position: int
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Capture:
    """A value found in a result, and whether a later message repeats it."""

    tool: str
    value: str
    echoed: bool


class ToolOutputEcho:
    """Walks the results of matching tools and looks for their captured values in later messages."""

    def grade(self, input: GraderInput[ToolOutputEchoConfig]) -> GraderResult:
        config = input.config
        tools = [compile_regex(pattern) for pattern in config.tools]
        pattern = compile_regex(config.pattern)
        results = list(_results(input.trajectory, input.full_trajectory, tools))
        captures = list(_captures(input.trajectory, results, pattern))
        echoed = next((capture for capture in captures if capture.echoed), None)
        shown = echoed or (captures[-1] if captures else None)
        return GraderResult.verdict(
            echoed is not None,
            _evidence(config, bool(results), shown),
            name=KEYWORD,
            metadata={"captured": len(captures), "value": shown.value if shown else None},
        )

    def default_name(self, config: ToolOutputEchoConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.pattern)}"


def _results(view: Trajectory, whole: Trajectory, tools: list[Regex]) -> Iterator[Result]:
    names = _tool_names(whole)
    for position, event in enumerate(view.events):
        if event.type == "tool_result":
            name = event.data.get("toolName") or names.get(str(event.data.get("toolCallId")))
            if isinstance(name, str) and any(tool.search(name) for tool in tools):
                yield Result(position, name, result_text(event) or "")


def _tool_names(whole: Trajectory) -> dict[str, object]:
    """Tool names by call id; of calls that share an id the first counts."""
    calls = [event.data for event in whole.events if event.type == "tool_call" and "toolCallId" in event.data]
    return {str(call["toolCallId"]): call.get("toolName") for call in reversed(calls)}


def _captures(view: Trajectory, results: list[Result], pattern: Regex) -> Iterator[Capture]:
    for result in results:
        match = pattern.search(result.text)
        if match is None:
            continue
        first_group = match.groups[0] if match.groups else None
        value = match.text if first_group is None else first_group
        if value:
            yield Capture(result.tool, value, _is_repeated(value, view.events[result.position + 1 :]))


def _is_repeated(value: str, later: list[Event]) -> bool:
    contents = (event.data.get("content") for event in later if event.type == "assistant_message")
    return any(isinstance(content, str) and value in content for content in contents)


def _evidence(config: ToolOutputEchoConfig, any_result: bool, shown: Capture | None) -> str:
    tools = ", ".join(f"/{tool}/" for tool in config.tools)
    if not any_result:
        return f"No results from tools matching {tools}"
    if shown is None:
        return f"Pattern /{config.pattern}/ not found in any result of tools matching {tools}"
    found = "found in a later" if shown.echoed else "NOT found in any later"
    return f"'{shown.value}' from {shown.tool} output {found} assistant message"
