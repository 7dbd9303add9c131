"""The timeline of a trial: turns, in them events, calls with their results, calls that ran together as one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vally_command_results.recorded import mapping, succeeded
from vally_command_results.server.pages.text import Excerpt, as_text, excerpt, name, one_line

PAGE_EVENTS = 500
VALUE_LENGTH = 4_000
FIND_LENGTH = 200_000
Event = Mapping[str, Any]
KINDS = {
    "tool_call": ("⚙", "tool"),
    "tool_result": ("⚙", "result"),
    "user_message": ("▸", "user"),
    "assistant_message": ("◂", "assistant"),
    "reasoning": ("∴", "reasoning"),
    "skill_activation": ("★", "skill"),
    "token_usage": ("Σ", "tokens"),
    "error": ("⚠", "error"),
}
SHOWN: Mapping[str, frozenset[str]] = {
    "tools": frozenset({"tool_call", "tool_result"}),
    "messages": frozenset({"user_message", "assistant_message", "reasoning"}),
    "errors": frozenset({"error", "tool_call", "tool_result"}),
    "other": frozenset({"skill_activation", "token_usage", "system_event"}),
}
_BOUNDS = ("turn_start", "turn_end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One event; `state` is `good`, `failed`, `open` (a call without result) or empty. Times are in ms."""

    index: int
    kind: str
    glyph: str
    word: str
    title: str = ""
    summary: str = ""
    offset: int | None = None
    took: int | None = None
    state: str = ""
    simulated: bool = False
    agent: str = ""
    body: Excerpt | None = None
    result: Excerpt | None = None
    result_index: int = 0

    @property
    def is_call(self) -> bool:
        """Whether it is a call of a tool."""
        return self.kind == "tool_call"


@dataclass(slots=True)
class Turn:
    """The rows of a turn; rows that ran at the same time share a list."""

    number: int | None
    rows: list[list[Row]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Number of tool calls."""
        return sum(row.is_call for group in self.rows for row in group)


@dataclass(frozen=True, slots=True)
class Timeline:
    """One page of a timeline, its number, and how many pages and events there are."""

    turns: list[Turn]
    page: int
    pages: int
    total: int
    shown: int


def timeline(events: Sequence[Event], *, show: str = "", find: str = "", page: int = 1) -> Timeline:
    """The rows of events that carry `index` and `offsetMs`; `show` and `find` choose among them."""
    results = _results(events)
    paired = {id(result) for result in results.values()}
    kept = [
        event
        for event in events
        if event.get("type") not in _BOUNDS
        and id(event) not in paired
        and (not show or _is_shown(event, show, results))
        and (not find or _mentions(event, find.lower(), results))
    ]
    pages = max(1, -(-len(kept) // PAGE_EVENTS))
    number = min(page, pages)
    part = kept[(number - 1) * PAGE_EVENTS : number * PAGE_EVENTS]
    return Timeline(_turns(part, events, results), number, pages, len(events), len(kept))


def _data(event: Event) -> Mapping[str, Any]:
    return mapping(event.get("data"))


def _call_id(event: Event) -> str | None:
    value = _data(event).get("toolCallId")
    return value if isinstance(value, str) else None


def _results(events: Iterable[Event]) -> dict[str, Event]:
    """The first result of each call, wherever it stands behind it."""
    called: set[str] = set()
    found: dict[str, Event] = {}
    for event in events:
        call_id = _call_id(event)
        if call_id is None:
            continue
        if event.get("type") == "tool_call":
            called.add(call_id)
        elif event.get("type") == "tool_result" and call_id in called:
            found.setdefault(call_id, event)
    return found


def _is_shown(event: Event, show: str, results: Mapping[str, Event]) -> bool:
    kind = str(event.get("type"))
    if show == "other":
        return kind not in SHOWN["tools"] | SHOWN["messages"] | {"error"}
    if kind not in SHOWN[show]:
        return False
    return show != "errors" or kind == "error" or _state(event, results.get(_call_id(event) or "")) == "failed"


def _mentions(event: Event, needle: str, results: Mapping[str, Event]) -> bool:
    result = results.get(_call_id(event) or "") if event.get("type") == "tool_call" else None
    values = [*_data(event).values(), *(_data(result).values() if result is not None else ())]
    return any(needle in as_text(value)[:FIND_LENGTH].lower() for value in values) or needle in str(event.get("type"))


def _turns(part: Sequence[Event], events: Sequence[Event], results: Mapping[str, Event]) -> list[Turn]:
    together = _together(events)
    turns: list[Turn] = []
    group: int | None = None
    for event in part:
        number = event.get("turn") if isinstance(event.get("turn"), int) else None
        if not turns or turns[-1].number != number:
            turns.append(Turn(number))
            group = None
        row = _row(event, results)
        same = together.get(event["index"])
        if same is not None and same == group:
            turns[-1].rows[-1].append(row)
        else:
            turns[-1].rows.append([row])
        group = same
    return turns


def _together(events: Sequence[Event]) -> dict[int, int]:
    """For each call the first of those that began before any of them had its result."""
    found: dict[int, int] = {}
    first: int | None = None
    for event in events:
        if event.get("type") == "tool_call":
            first = event["index"] if first is None else first
            found[event["index"]] = first
        else:
            first = None
    return found


def _state(call: Event, result: Event | None) -> str:
    if call.get("type") == "error":
        return "failed"
    answer = _data(call if call.get("type") == "tool_result" else result or {})
    if call.get("type") == "tool_call" and result is None:
        return "open"
    if call.get("type") not in ("tool_call", "tool_result"):
        return ""
    return "good" if succeeded(answer) else "failed"


def _row(event: Event, results: Mapping[str, Event]) -> Row:
    kind = str(event.get("type"))
    glyph, word = KINDS.get(kind, ("·", name(kind, 40)))
    data = _data(event)
    result = results.get(_call_id(event) or "") if kind == "tool_call" else None
    agent = event.get("agentName") or event.get("agentId")
    body, summary = _body(kind, data)
    return Row(
        index=event["index"],
        kind=kind,
        glyph=glyph,
        word=word,
        title=_title(kind, data),
        summary=summary,
        offset=event.get("offsetMs"),
        took=_took(event, result),
        state=_state(event, result),
        simulated=data.get("simulated") is True,
        agent=name(agent, 60) if isinstance(agent, str) and agent else "",
        body=body,
        result=None if result is None else excerpt(_data(result).get("result"), VALUE_LENGTH),
        result_index=0 if result is None else result["index"],
    )


def _took(event: Event, result: Event | None) -> int | None:
    start, end = event.get("offsetMs"), None if result is None else result.get("offsetMs")
    return None if start is None or end is None else max(0, end - start)


def _title(kind: str, data: Mapping[str, Any]) -> str:
    if kind in ("tool_call", "tool_result"):
        server = data.get("mcpServer")
        tool = name(data.get("toolName"), 80)
        return f"{name(server, 60)} / {tool}" if server else tool
    if kind == "skill_activation":
        return name(data.get("name"), 80)
    return name(data.get("eventType"), 80) if data.get("eventType") else ""


def event_value(kind: str, data: Mapping[str, Any]) -> Any:
    """What an event says."""
    key = {
        "tool_call": "arguments",
        "tool_result": "result",
        "user_message": "content",
        "assistant_message": "content",
        "reasoning": "content",
        "error": "message",
    }.get(kind)
    if key is not None:
        return data.get(key)
    rest = {item: value for item, value in data.items() if item not in ("eventType", "name")}
    return rest or None


def _body(kind: str, data: Mapping[str, Any]) -> tuple[Excerpt | None, str]:
    if kind == "token_usage":
        return None, _usage(data)
    value = event_value(kind, data)
    if value is None:
        return None, ""
    return excerpt(value, VALUE_LENGTH), _arguments(value) if kind == "tool_call" else one_line(value)


def _arguments(value: Any) -> str:
    """Arguments as `key: value` pairs."""
    if not isinstance(value, Mapping):
        return one_line(value)
    return one_line(", ".join(_pairs(value)))


def _pairs(value: Mapping[str, Any]) -> Iterator[str]:
    for key, item in list(value.items())[:6]:
        yield f"{name(key, 30)}: {one_line(item, 90)}"


def _usage(data: Mapping[str, Any]) -> str:
    parts = [f"{data[key]:,} {word}" for key, word in _USAGE if isinstance(data.get(key), int)]
    model = data.get("model")
    return ", ".join([*parts, *([name(model, 40)] if model else [])])


_USAGE = (("inputTokens", "in"), ("outputTokens", "out"), ("cacheReadTokens", "cached"))
