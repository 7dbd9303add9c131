"""Dialects: how the output of an agent becomes events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vally import Event
from vally_executor_command import text


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTurn:
    """What one turn's output says: its events, the agent's own session id, and a terminal error with its status."""

    events: tuple[Event, ...]
    session_id: str | None = None
    error: str | None = None
    status: int | None = None


Parser = Callable[[str, bool], ParsedTurn]
"""A pure function of the whole output of a turn, and of whether the agent ended the turn by itself and in order."""


def _text(output: str, complete: bool) -> ParsedTurn:
    return ParsedTurn(events=text.events(output, complete))


DIALECTS: Mapping[str, Parser] = MappingProxyType({"text": _text})
