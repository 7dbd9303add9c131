"""Tool calls of a trajectory with their results, grouped into steps and batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from vally.model.trajectory import Event
from vally.model.turns import carried_turns
from vally.text.numbers import compact_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One `tool_call` event.

    `result` is its `tool_result` event, None for an interrupted call. `arguments` is any JSON value, an empty mapping
    when absent. `step` and `batch` number the assistant responses and the sets of parallel calls of the view from 0.
    """

    event: Event
    result: Event | None
    name: str
    arguments: Any
    step: int
    batch: int

    @property
    def id(self) -> str | None:
        """The `toolCallId`, when it has one."""
        return _text(self.event.data.get("toolCallId"))

    @property
    def arguments_json(self) -> str:
        """Arguments as compact JSON."""
        return compact_json(self.arguments)

    @property
    def result_text(self) -> str | None:
        """The result as text, None when there is no result."""
        return None if self.result is None else result_text(self.result)


def result_text(result: Event) -> str | None:
    """Text of a `tool_result` event: a string as it is, else its compact JSON; None without a result value."""
    value = result.data.get("result")
    if value is None:
        return None
    return value if isinstance(value, str) else compact_json(value)


def tool_calls(view: Sequence[Event], events: Sequence[Event] | None = None) -> list[ToolCall]:
    """Calls of a view in order. Results are looked up in `events`, the whole trajectory, by default the view."""
    whole = _whole(view, events)
    results = _pair(whole)
    keys = _group_keys(whole)
    steps: dict[Hashable, int] = {}
    batches: dict[Hashable, int] = {}
    calls: list[ToolCall] = []
    for event in view:
        if event.type != "tool_call":
            continue
        step, batch = keys[id(event)]
        calls.append(
            ToolCall(
                event=event,
                result=results.get(id(event)),
                name=_text(event.data.get("toolName")) or "",
                arguments=event.data.get("arguments", {}),
                step=steps.setdefault(step, len(steps)),
                batch=batches.setdefault(batch, len(batches)),
            )
        )
    return calls


def _whole(view: Sequence[Event], events: Sequence[Event] | None) -> Sequence[Event]:
    if events is None or events is view:
        return view
    known = {id(event) for event in events}
    # Events that are no part of the trajectory (a hand-made view) can only be read by themselves.
    return events if all(id(event) in known for event in view) else view


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _pair(events: Sequence[Event]) -> dict[int, Event]:
    """`id()` of each call event -> its result event."""
    by_id: dict[str, list[int]] = defaultdict(list)
    by_name: dict[str | None, list[int]] = defaultdict(list)
    for index, event in enumerate(events):
        if event.type == "tool_result":
            if call_id := _text(event.data.get("toolCallId")):
                by_id[call_id].append(index)
            by_name[_text(event.data.get("toolName"))].append(index)
    paired: dict[int, Event] = {}
    taken: set[int] = set()
    calls = [(index, event) for index, event in enumerate(events) if event.type == "tool_call"]
    # Calls with an id first: what is left over belongs to those without.
    for index, call in sorted(calls, key=lambda item: not _text(item[1].data.get("toolCallId"))):
        call_id = _text(call.data.get("toolCallId"))
        found = (
            _first_later(by_id.get(call_id, ()), index, call, events)
            if call_id
            else _next_free(by_name.get(_text(call.data.get("toolName")), ()), index, taken)
        )
        if found is not None:
            taken.add(found)
            paired[id(call)] = events[found]
    return paired


def _first_later(candidates: Sequence[int], index: int, call: Event, events: Sequence[Event]) -> int | None:
    for candidate in candidates:
        agent = events[candidate].agent_id
        if candidate > index and (call.agent_id is None or agent is None or agent == call.agent_id):
            return candidate
    return None


def _next_free(candidates: Sequence[int], index: int, taken: set[int]) -> int | None:
    return next((candidate for candidate in candidates if candidate > index and candidate not in taken), None)


def _group_keys(events: Sequence[Event]) -> dict[int, tuple[Hashable, Hashable]]:
    """`id()` of each call event -> the keys of its step and of its batch."""
    keys: dict[int, tuple[Hashable, Hashable]] = {}
    open_turns: dict[str | None, list[str | None]] = defaultdict(list)
    adjacent: Event | None = None
    run = 0
    for event, turn in zip(events, _conversation_turns(events), strict=True):
        if event.type == "turn_start":
            open_turns[event.agent_id].append(_turn_id(event))
        elif event.type == "turn_end":
            _close(open_turns[event.agent_id], _turn_id(event))
        elif event.type == "tool_call":
            own = _turn_id(event)
            if own is not None:
                batch: Hashable = ("turn", event.agent_id, turn, own)
            else:
                run += adjacent is None or adjacent.agent_id != event.agent_id
                batch = ("adjacent", run)
            started = own if own is not None else next(reversed(open_turns[event.agent_id]), None)
            keys[id(event)] = (batch if started is None else ("turn", event.agent_id, turn, started), batch)
        adjacent = event if event.type == "tool_call" and _turn_id(event) is None else None
    return keys


def _turn_id(event: Event) -> str | None:
    value = event.data.get("turnId")
    return str(value) if isinstance(value, (str, int)) else None


def _close(started: list[str | None], turn_id: str | None) -> None:
    if turn_id is None:
        del started[-1:]
        return
    for index in range(len(started) - 1, -1, -1):
        if started[index] == turn_id:
            del started[index]
            return


def _conversation_turns(events: Sequence[Event]) -> list[int]:
    if any(event.turn is not None for event in events):
        return carried_turns(events)
    # Turn ids may restart with every user message, so the messages tell equal ids apart.
    turns: list[int] = []
    current = 0
    for event in events:
        current += event.type == "user_message" and event.agent_id is None
        turns.append(current)
    return turns
