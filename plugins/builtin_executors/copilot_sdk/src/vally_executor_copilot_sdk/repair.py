"""What the SDK did not hand on is read from the file in which the runtime keeps the events of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vally_executor_copilot_sdk.native import Native

_MAPPED = frozenset(
    {
        "assistant.turn_start",
        "assistant.turn_end",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "skill.invoked",
    }
)
_TOKENS = ("inputTokens", "outputTokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """All events of a session in order, and how many results and usage records were not told live or wrongly."""

    events: tuple[Native, ...]
    tool_results: int = 0
    usage_records: int = 0
    others: int = 0

    @property
    def changed(self) -> bool:
        """Whether the file told more than the SDK."""
        return bool(self.tool_results or self.usage_records or self.others)


def repaired(live: Sequence[Native], persisted: Iterable[Native]) -> Repaired:
    """Complete what came from the SDK by what is in the file.

    A missing event takes its place after the one that precedes it in the file. A result that is empty and a usage
    record with fewer tokens are replaced.
    """
    merged = _Merge(live)
    for event in persisted:
        merged.take(event)
    return Repaired(
        events=tuple(merged.events),
        tool_results=merged.tool_results,
        usage_records=merged.usage_records,
        others=merged.others,
    )


def unanswered(events: Iterable[Native]) -> frozenset[str]:
    """Ids of the tool calls that have no result, or one without text."""
    called: dict[str, bool] = {}
    for event in events:
        call = event["data"].get("toolCallId")
        if event["type"] == "tool.execution_start" and isinstance(call, str):
            called.setdefault(call, False)
        elif event["type"] == "tool.execution_complete" and isinstance(call, str):
            called[call] = not _is_empty(event)
    return frozenset(call for call, answered in called.items() if not answered)


class _Merge:
    def __init__(self, live: Sequence[Native]) -> None:
        self.events = list(live)
        self.tool_results = 0
        self.usage_records = 0
        self.others = 0
        self._at = {event["id"]: index for index, event in enumerate(live) if "id" in event}
        self._usage = {
            event["data"].get("apiCallId"): index
            for index, event in enumerate(live)
            if event["type"] == "assistant.usage"
        }
        self._after = -1

    def take(self, event: Native) -> None:
        at = self._at.get(event.get("id"))
        if at is not None:
            self._after = at
            if event["type"] == "tool.execution_complete" and _is_empty(self.events[at]) and not _is_empty(event):
                self.events[at] = event
                self.tool_results += 1
        elif event["type"] == "session.usage_record":
            self._take_usage(event)
        elif event["type"] in _MAPPED:
            self._insert(event)
            if event["type"] == "tool.execution_complete":
                self.tool_results += 1
            else:
                self.others += 1

    def _take_usage(self, event: Native) -> None:
        usage = event["data"].get("usage")
        if not isinstance(usage, dict):
            return
        at = self._usage.get(usage.get("apiCallId"))
        if at is None:
            self._insert(event)
        elif _tokens(usage) > _tokens(self.events[at]["data"]):
            self.events[at] = event
        else:
            return
        self.usage_records += 1

    def _insert(self, event: Native) -> None:
        place = self._after + 1
        self.events.insert(place, event)
        for known in (self._at, self._usage):
            for key, index in known.items():
                if index >= place:
                    known[key] = index + 1
        self._after = place


def _is_empty(event: Native) -> bool:
    result = event["data"].get("result")
    if event["data"].get("success") is not True:
        return False
    return not isinstance(result, dict) or not result.get("content")


def _tokens(usage: dict[str, Any]) -> int:
    return sum(value for value in (usage.get(name) for name in _TOKENS) if isinstance(value, int))
