"""The events of one trial in order, with the rules that every trajectory keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vally.model.jsonio import timestamp
from vally.model.trajectory import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from vally.run.skill_reads import SkillReads


class EventLog:
    """Takes events in the order of occurrence.

    A user message to the main agent opens the next conversation turn. Ids of tool calls are made unique and their
    results follow. `skill_reads` adds the skills that were read as files.
    """

    def __init__(self, planned_turns: int, on_event: Callable[[Event], None], skill_reads: SkillReads | None) -> None:
        self._several = planned_turns > 1
        self._on_event = on_event
        self._skill_reads = skill_reads
        self._turns: list[int] = []
        self._pending: dict[str, Event] = {}
        self._call_ids: set[str] = set()
        self._read: set[tuple[int, str]] = set()
        self._started: dict[tuple[int, str | None], int] = {}
        self.open_turns: dict[str | None, str] = {}
        self.events: list[Event] = []
        self.turn = -1

    def record(self, event: Event) -> Event:
        """Append an event and return it as it stands now."""
        match event.type:
            case "user_message" if event.agent_id is None:
                self.turn += 1
                self.open_turns.clear()
            case "turn_start":
                self._open_turn(event)
            case "turn_end":
                self._close_turn(event)
            case "tool_call":
                self._register_call(event)
            case "tool_result":
                return self._record_result(event)
        return self._append(event)

    def replay(self, event: Event) -> Event:
        """Append an event of a recorded session, which keeps its ids; only its conversation turn is counted."""
        if event.type == "user_message" and event.agent_id is None:
            self.turn += 1
        return self._append(event)

    def number_turns(self) -> None:
        """Set `turn` on every event once there was more than one prompt."""
        if self._several or self.turn > 0:
            for event, turn in zip(self.events, self._turns, strict=True):
                event.turn = turn

    def _append(self, event: Event) -> Event:
        turn = max(0, self.turn) if event.turn is None else event.turn
        if self._several:
            event.turn = turn
        if event.timestamp is None:
            event.timestamp = timestamp()
        self.events.append(event)
        self._turns.append(turn)
        self._on_event(event)
        return event

    def _open_turn(self, event: Event) -> None:
        if "turnId" not in event.data:
            event.data["turnId"] = self._next_turn_id(event.agent_id)
        self.open_turns[event.agent_id] = event.data["turnId"]

    def _close_turn(self, event: Event) -> None:
        opened = self.open_turns.pop(event.agent_id, None)
        if "turnId" not in event.data:
            event.data["turnId"] = self._next_turn_id(event.agent_id) if opened is None else opened

    def _next_turn_id(self, agent_id: str | None) -> str:
        key = (self.turn, agent_id)
        number = self._started.get(key, 0)
        self._started[key] = number + 1
        return str(number)

    def _register_call(self, event: Event) -> None:
        data = event.data
        told = data.get("toolCallId")
        data["toolCallId"] = self._unique(told)
        self._pending[told if isinstance(told, str) else data["toolCallId"]] = event
        if "turnId" not in data and event.agent_id in self.open_turns:
            data["turnId"] = self.open_turns[event.agent_id]

    def _unique(self, told: object) -> str:
        base = told if isinstance(told, str) and told else f"call-{len(self._call_ids)}"
        chosen, number = base, 2
        while chosen in self._call_ids:
            chosen, number = f"{base}#{number}", number + 1
        self._call_ids.add(chosen)
        return chosen

    def _record_result(self, event: Event) -> Event:
        told = event.data.get("toolCallId")
        call = self._pending.pop(told, None) if isinstance(told, str) else None
        if call is None:
            # The call was never told; a result without a call could not be joined with anything.
            data = {key: event.data[key] for key in ("toolName", "toolCallId") if key in event.data}
            call = Event(type="tool_call", timestamp=event.timestamp, agent_id=event.agent_id, data=data)
            self.record(call)
            self._pending.pop(call.data["toolCallId"], None)
        event.data["toolCallId"] = call.data["toolCallId"]
        event.data.setdefault("toolName", call.data.get("toolName", ""))
        self._append(event)
        if event.data.get("success") is True:
            self._note_skills(call, event)
        return event

    def _note_skills(self, call: Event, result: Event) -> None:
        if self._skill_reads is None:
            return
        for skill in self._skill_reads.of_call(str(call.data.get("toolName", "")), call.data.get("arguments")):
            if (self.turn, skill.name) not in self._read:
                self._read.add((self.turn, skill.name))
                data = {"name": skill.name, "path": str(skill.path), "trigger": "file-read"}
                self._append(
                    Event(type="skill_activation", agent_id=result.agent_id, agent_name=result.agent_name, data=data)
                )
