"""Conversation turns: which user prompt an event belongs to."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from vally.model.trajectory import Event


def attribute_turns(events: Sequence[Event], prompts: Sequence[str]) -> list[Event]:
    """Copies of imported events with `turn` set from the prompts they follow, or unset when not all were found."""
    openers = _openers(events, prompts)
    if openers is None:
        return [event.model_copy(update={"turn": None}) for event in events]
    turns = _spread(openers, len(events))
    return [event.model_copy(update={"turn": turn}) for event, turn in zip(events, turns, strict=True)]


def _openers(events: Sequence[Event], prompts: Sequence[str]) -> list[int] | None:
    """Index of the event that opens each turn; None when some prompt has none."""
    if len(prompts) <= 1:
        return [0]
    candidates = main_prompts(events)
    if len(candidates) == len(prompts):
        return candidates
    found: list[int] = []
    for index in candidates:
        if len(found) < len(prompts) and comparable(_content(events[index])) == comparable(prompts[len(found)]):
            found.append(index)
    return found if len(found) == len(prompts) else None


def main_prompts(events: Sequence[Event]) -> list[int]:
    """Indexes of the user messages to the main agent."""
    return [index for index, event in enumerate(events) if event.type == "user_message" and event.agent_id is None]


def _content(event: Event) -> str:
    content = event.data.get("content")
    return content if isinstance(content, str) else ""


def comparable(text: str) -> str:
    """What is equal for prompts that are the same."""
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").strip()


def _spread(openers: Sequence[int], count: int) -> list[int]:
    """The turn open at each of `count` events; events before the first opener belong to turn 0."""
    turns = [0] * min(openers[0], count)
    for turn, (start, end) in enumerate(pairwise([*openers, count])):
        turns += [turn] * (end - start)
    return turns


def partition_turns(events: Sequence[Event], stimulus_turns: int) -> list[int] | None:
    """The conversation turn of each event of a trajectory, or None when no turn was recorded."""
    if stimulus_turns <= 1:
        return [0] * len(events)
    if any(event.turn is not None for event in events):
        return carried_turns(events)
    openers = main_prompts(events)
    return _spread(openers, len(events)) if len(openers) == stimulus_turns else None


def carried_turns(events: Sequence[Event]) -> list[int]:
    """Each event's own `turn`, else that of the nearest earlier event that has one, else 0."""
    turns: list[int] = []
    current = 0
    for event in events:
        current = current if event.turn is None else event.turn
        turns.append(current)
    return turns
