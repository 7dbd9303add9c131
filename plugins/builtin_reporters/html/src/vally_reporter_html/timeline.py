"""What happened in a trial, event by event: calls with their results, messages, errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vally import parse_timestamp
from vally_reporter_html.text import Cut, cut, milliseconds, name, value

if TYPE_CHECKING:
    from vally import Event

MAX_STEPS = 300
"""Steps of a trial that are shown: the first two thirds and the last third."""

TEXT_LIMIT = 4_000
VALUE_LIMIT = 2_000
_HIDDEN = frozenset({"turn_start", "turn_end", "token_usage"})
_TITLES = {"user_message": "user", "assistant_message": "assistant", "skill_activation": "skill"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the timeline; `offset` and `took` are texts, empty when the times are not known."""

    kind: str
    title: str
    text: Cut
    offset: str = ""
    took: str = ""
    result: Cut | None = None
    ok: bool | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The first and last steps, and how many are left out between them."""

    head: tuple[Step, ...]
    omitted: int
    tail: tuple[Step, ...]


def timeline(events: Sequence[Event]) -> Timeline:
    """The steps of a trial."""
    results = {str(e.data.get("toolCallId")): e for e in events if e.type == "tool_result"}
    called = {str(e.data.get("toolCallId")) for e in events if e.type == "tool_call"}
    # A result stands with its call; one without a call stands alone.
    shown = [
        event
        for event in events
        if event.type not in _HIDDEN
        and not (event.type == "tool_result" and str(event.data.get("toolCallId")) in called)
    ]
    start = next((moment for event in events if (moment := parse_timestamp(event.timestamp))), None)
    head, tail = shown, shown[:0]
    if len(shown) > MAX_STEPS:
        head, tail = shown[: MAX_STEPS * 2 // 3], shown[-MAX_STEPS // 3 :]
    omitted = len(shown) - len(head) - len(tail)
    return Timeline(tuple(_steps(head, start, results)), omitted, tuple(_steps(tail, start, results)))


def _steps(events: Sequence[Event], start: datetime | None, results: dict[str, Event]) -> Iterator[Step]:
    for event in events:
        moment = parse_timestamp(event.timestamp)
        offset = "" if moment is None or start is None else _offset(moment, start)
        step = _step(event, results)
        yield replace(
            step, offset=offset, agent=name(event.agent_name or event.agent_id or "") if event.agent_id else ""
        )


def _offset(moment: datetime, start: datetime) -> str:
    seconds = (moment - start).total_seconds()
    return f"{max(seconds, 0.0):.3f}s" if seconds < 100 else milliseconds(seconds * 1000)


def _step(event: Event, results: dict[str, Event]) -> Step:
    data = event.data
    if event.type == "tool_call":
        return _call(event, results.get(str(data.get("toolCallId"))))
    if event.type == "tool_result":
        result = value(data.get("result"), VALUE_LIMIT)
        return Step(kind="tool", title=_tool(data), text=Cut(""), result=result, ok=_ok(data))
    title = _TITLES.get(event.type, event.type)
    if event.type in ("user_message", "assistant_message", "reasoning"):
        return Step(kind=title, title=title, text=value(data.get("content"), TEXT_LIMIT))
    if event.type == "skill_activation":
        return Step(kind="skill", title=f"skill {name(str(data.get('name') or ''))}", text=Cut(""))
    if event.type == "error":
        return Step(kind="error", title="error", text=value(data.get("message"), TEXT_LIMIT), ok=False)
    kind = str(data.get("eventType") or "")
    rest = {key: item for key, item in data.items() if key != "eventType"}
    text = value(rest, VALUE_LIMIT) if rest else Cut("")
    return Step(kind="system", title=name(f"{event.type} {kind}"), text=text)


def _call(event: Event, result: Event | None) -> Step:
    data, found = event.data, result.data if result is not None else {}
    began, ended = parse_timestamp(event.timestamp), parse_timestamp(result.timestamp) if result is not None else None
    took = milliseconds((ended - began).total_seconds() * 1000) if began and ended and ended >= began else ""
    return Step(
        kind="tool",
        title=_tool(data),
        text=value(data.get("arguments"), VALUE_LIMIT),
        took=took,
        result=None if result is None else value(found.get("result"), VALUE_LIMIT),
        ok=None if result is None else _ok(found),
    )


def _tool(data: dict[str, Any]) -> str:
    server = data.get("mcpServer")
    title = name(str(data.get("toolName") or ""))
    return f"{name(str(server))} / {title}" if server else title


def _ok(data: dict[str, Any]) -> bool | None:
    success = data.get("success")
    return success if isinstance(success, bool) else None


def one_line(text: Cut, limit: int = 160) -> str:
    """The start of a text on one line."""
    line = " ".join(cut(text.text, 4 * limit).text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
