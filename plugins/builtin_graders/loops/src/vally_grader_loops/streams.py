"""The streams of calls in which loops are looked for: one per agent and conversation turn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

from pydantic import Field

from vally import (
    Config,
    GraderInput,
    ToolCall,
    ToolPatterns,
    canonical_json,
    compact_json,
    compile_regex,
    partition_turns,
    tool_calls,
)
from vally_grader_loops.stretches import WatchedCall

Match = Literal["observation", "name", "name-args"]


class WatchConfig(Config):
    """Which calls are watched, and when two of them are equal."""

    match: Match
    tools: ToolPatterns = Field(default_factory=list)
    max_cycle_period: int = Field(default=1, ge=1, le=10)


def watched_streams(input: GraderInput[Any]) -> list[list[WatchedCall]]:
    """Watched calls of the view, split by agent and conversation turn. Raises `InvalidRegex`."""
    config: WatchConfig = input.config
    tools = [compile_regex(pattern) for pattern in config.tools]
    turns = _turns(input)
    streams: dict[Hashable, list[WatchedCall]] = {}
    for index, call in enumerate(tool_calls(input.trajectory.events, input.full_trajectory.events)):
        if not tools or any(tool.search(call.name) for tool in tools):
            stream = streams.setdefault((call.event.agent_id, turns.get(id(call.event), 0)), [])
            stream.append(WatchedCall(index, call.name, _key(call, index, config.match)))
    return list(streams.values())


def _turns(input: GraderInput[Any]) -> dict[int, int]:
    """`id()` of each event -> its conversation turn; empty when turns were not recorded."""
    events = input.full_trajectory.events
    turns: Sequence[int] = partition_turns(events, len(input.stimulus.turns)) or ()
    return {id(event): turn for event, turn in zip(events, turns, strict=False)}


def _key(call: ToolCall, index: int, match: Match) -> Hashable:
    if match == "name":
        return call.name
    if match == "name-args":
        return call.name, _comparable(call.arguments)
    observed = call.result_text
    # A call without result equals no other.
    return (call.name, index, None) if observed is None else (call.name, observed)


def _comparable(arguments: Any) -> str:
    """A text that is the same for deep-equal arguments."""
    try:
        return canonical_json(arguments)
    except (ValueError, RecursionError):
        # Numbers that are none, or nesting that no agent produces on purpose.
        return compact_json(arguments)
