"""Reading agents that write one JSON object per line: tolerant of anything else, of unknown types and of a cut end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from vally import Event
from vally_executor_command.dialects.parsed import ParsedTurn, TurnOutput

UNREADABLE_CHARACTERS = 200


class JsonLines(ABC):
    """The parser of one turn: `line` is called per object, `close` at the end. Subclasses fill in the fields.

    Fields that start with an underscore are their own; the others become the `ParsedTurn`.
    """

    def __init__(self, output: TurnOutput) -> None:
        self.output = output
        self.session_id: str | None = None
        self.error: str | None = None
        self.status: int | None = None
        self.waiting = False
        self.end_reason: str | None = None
        self.failed_servers: dict[str, str] = {}
        self.skills: tuple[str, ...] | None = None
        self.builtin_skills: tuple[str, ...] = ()
        self.metadata: dict[str, Any] = {}
        self.totals: dict[str, Any] = dict(output.before)
        self._events: list[Event] = []
        self._arrived: str | None = None
        self._understood = self._ended = False

    @classmethod
    def parse(cls, output: TurnOutput) -> ParsedTurn:
        """Read a whole turn."""
        return cls(output).read()

    def read(self) -> ParsedTurn:
        """Read all lines; never raises for what an agent wrote."""
        for number, text in enumerate(self.output.text.split("\n")):
            times = self.output.times
            self._arrived = times[number] if number < len(times) else None
            if text.strip():
                self._read_line(text.rstrip("\r"))
        self.close()
        unreadable = self.output.text.strip()[:UNREADABLE_CHARACTERS] if not self._understood else None
        return ParsedTurn(
            events=tuple(self._events),
            session_id=self.session_id,
            error=self.error,
            status=self.status,
            waiting=self.waiting,
            end_reason=self.end_reason,
            failed_servers=self.failed_servers,
            skills=self.skills,
            builtin_skills=self.builtin_skills,
            metadata=self.metadata,
            unreadable=unreadable,
            unfinished=self._understood and not self._ended,
            totals=self.totals,
        )

    def _read_line(self, text: str) -> None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            self._understood = True
            self.line(string(found.get("type")) or "", found)
        else:
            self.custom("stdout", {"text": text})

    @abstractmethod
    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object; an unknown type becomes a `custom` event."""

    def close(self) -> None:  # noqa: B027 - most dialects have nothing to do
        """The output is over."""

    def add(
        self,
        type_: str,
        data: Mapping[str, Any],
        *,
        at: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
    ) -> None:
        """Append an event; values that are None are left out. `at` is the agent's own time."""
        present = {key: value for key, value in data.items() if value is not None}
        time = at or self._arrived
        self._events.append(Event(type=type_, data=present, timestamp=time, agent_id=agent_id, agent_name=agent_name))

    def custom(self, event_type: str, data: Mapping[str, Any], **envelope: Any) -> None:
        """Append something that is only kept."""
        self.add("custom", {**data, "eventType": event_type or "unknown"}, **envelope)

    def ended(self) -> None:
        """The line that ends a turn was there."""
        self._ended = True

    def fail(self, message: str, status: int | None = None) -> None:
        """The turn ended with this error."""
        self.error, self.status, self.waiting = message or "the agent reported an error", status, False

    def retrying(self, message: str, status: int | None = None) -> None:
        """The provider refused a request, and the agent is going to repeat it."""
        self.error, self.status, self.waiting = message, status, True

    def going_on(self) -> None:
        """The agent got an answer after all."""
        if self.waiting:
            self.error, self.status, self.waiting = None, None, False


class Responses:
    """Agent turns of dialects that do not tell where one ends: a response ends after the results of its calls."""

    def __init__(self, events: JsonLines) -> None:
        self._events = events
        self._open = self._answered = False

    def content(self, at: str | None = None) -> None:
        """Text, thoughts or a call follow."""
        if self._open and self._answered:
            self.end(at)
        if not self._open:
            self._open, self._answered = True, False
            self._events.add("turn_start", {}, at=at)

    def answered(self) -> None:
        """The result of a call arrived."""
        self._answered = True

    def end(self, at: str | None = None) -> None:
        """The open response is complete."""
        if self._open:
            self._open = False
            self._events.add("turn_end", {}, at=at)


def mapping(value: object) -> Mapping[str, Any]:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def string(value: object) -> str | None:
    """The value when it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def integer(value: object) -> int | None:
    """The value when it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(value: object) -> int:
    """A number of tokens; whatever is none counts as 0."""
    return max(0, integer(value) or 0)


def status_code(value: object) -> int | None:
    """The value when it is the status of an HTTP error."""
    number = integer(value)
    return number if number is not None and 400 <= number <= 599 else None


def text_of(content: object) -> str:
    """The text of a message or result: a string, or a list of parts of which those with text count."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in mappings(content) if isinstance(part.get("text"), str))


def result_of(content: object) -> object:
    """The result of a tool: text where it is nothing but text, else as it is."""
    parts = mappings(content)
    if isinstance(content, list) and len(parts) == len(content) and all(part.get("type") == "text" for part in parts):
        return text_of(content)
    return content
