"""What parsers of an agent's output are given, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutput:
    """What an agent wrote during one turn.

    `complete` tells that it ended by itself and in order. `times` are the moments (ISO 8601) at which the lines of
    `text` arrived, as far as they are known. `usage` is the text of the usage file. `before` is what the parser said
    in `totals` of the turn before.
    """

    text: str
    complete: bool = True
    times: tuple[str, ...] = ()
    usage: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTurn:
    """What one turn's output says.

    `session_id` is the agent's own. `error` is a terminal one, with its HTTP `status` when the agent tells it; with
    `waiting` it is what the provider refused while the agent was still trying again. `end_reason` is set when the
    agent ended for another reason than being done. `failed_servers` are MCP servers that did not come up, with what is
    known; `skills` the names of those that the agent has, `builtin_skills` those of them that are its own. `metadata`
    goes into that of the trajectory. `unreadable` is the beginning of an output that has nothing of the dialect in it.
    `unfinished` tells that the agent began but did not write what ends a turn. `totals` are counts that run on over the
    turns of a session.
    """

    events: tuple[Event, ...]
    session_id: str | None = None
    error: str | None = None
    status: int | None = None
    waiting: bool = False
    end_reason: str | None = None
    failed_servers: Mapping[str, str] = field(default_factory=dict)
    skills: tuple[str, ...] | None = None
    builtin_skills: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unreadable: str | None = None
    unfinished: bool = False
    totals: Mapping[str, Any] = field(default_factory=dict)

    @property
    def acted(self) -> bool:
        """Whether the agent said anything or called a tool in this turn."""
        return any(event.type in ("assistant_message", "tool_call") for event in self.events)


Parser = Callable[[TurnOutput], ParsedTurn]
"""A pure function."""
