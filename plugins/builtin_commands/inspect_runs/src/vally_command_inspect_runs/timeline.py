"""The events of a trajectory as lines: offset, what happened, and its text shortened or whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vally import cells, compact_json, cut_to_cells, name_line, one_line, pad, parse_timestamp, printable

if TYPE_CHECKING:
    from vally import Event, Style, Trajectory

OFFSET_WIDTH = 9
LABEL_WIDTH = 11
MOST_LABEL = 28
_QUIET = frozenset({"turn_start", "turn_end", "token_usage"})
"""Types that say nothing about what the agent did; shown with everything else only."""
_COLORS = {"user_message": "cyan", "assistant_message": "bold", "reasoning": "dim", "error": "red"}


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """How a timeline is laid out: columns of a line, colours, and whether anything is shortened."""

    width: int
    style: Style
    whole: bool = False

    def lines(self, trajectory: Trajectory) -> Iterator[str]:
        """A line per event, more for texts that are not shortened, and one for the end."""
        clock = _Clock.of(trajectory)
        events = [event for event in trajectory.events if self.whole or event.type not in _QUIET]
        column = min(MOST_LABEL, max([LABEL_WIDTH, *(cells(name_line(_described(event)[0])) for event in events)]))
        turn: int | None = None
        several = len({event.turn for event in events if event.turn is not None}) > 1
        for event in events:
            if several and event.turn is not None and event.turn != turn:
                turn = event.turn
                yield self.style.paint(f"  ── turn {turn + 1} ──", "dim")
            label, text, color = _described(event)
            yield from self._row(clock.offset(event.timestamp), label, text, color, column)
        end = trajectory.end_reason
        if end is not None:
            yield from self._row(clock.end, "end", end, None if end == "completed" else "yellow", column)

    def _row(self, offset: str, label: str, text: str, color: str | None, column: int) -> Iterator[str]:
        label_cell = pad(cut_to_cells(name_line(label), column), column)
        head = f"  {offset:>{OFFSET_WIDTH - 2}}  "
        width = cells(head) + column + 1
        start = head + (self.style.paint(label_cell, color) if color else label_cell) + " "
        if not self.whole:
            # What lies far behind the end of the line need not be cleaned.
            line = one_line(text[: 8 * self.width])
            yield (start + cut_to_cells(line, max(self.width - width, 20))).rstrip()
            return
        first, *more = printable(text).expandtabs(4).splitlines() or [""]
        yield (start + first).rstrip()
        yield from (f"{' ' * width}{line}".rstrip() for line in more)


@dataclass(frozen=True, slots=True)
class _Clock:
    """Offsets from the start of a trajectory; `end` is that of its end, empty when it is not known."""

    start: datetime | None
    end: str

    @classmethod
    def of(cls, trajectory: Trajectory) -> _Clock:
        """Start at the recorded time, or at an event before it, whose clock the others follow then."""
        moments = [moment for event in trajectory.events if (moment := parse_timestamp(event.timestamp)) is not None]
        recorded = parse_timestamp(trajectory.metadata.get("startedAt"))
        if recorded is not None and not any(moment < recorded for moment in moments):
            return cls(recorded, cls(recorded, "").offset(trajectory.metadata.get("completedAt")) or _wall(trajectory))
        start = min(moments, default=None)
        last = max(moments, default=None)
        return cls(start, _seconds(start, last) if start and last else _wall(trajectory))

    def offset(self, moment: object) -> str:
        """`1.204s`; empty without a time."""
        parsed = parse_timestamp(moment)
        return "" if self.start is None or parsed is None else _seconds(self.start, parsed)


def _seconds(start: datetime, moment: datetime) -> str:
    return f"{(moment - start).total_seconds():.3f}s"


def _wall(trajectory: Trajectory) -> str:
    wall = trajectory.metrics.wall_time_ms if trajectory.metrics else None
    return "" if wall is None else f"{wall / 1000:.3f}s"


def _described(event: Event) -> tuple[str, str, str | None]:
    """Label, text and colour of an event."""
    label, text = _words(event.type, event.data)
    failed = event.type == "tool_result" and event.data.get("success") is False
    agent = event.agent_name or event.agent_id
    return (f"[{agent}] {label}" if agent else label), text, "red" if failed else _COLORS.get(event.type)


def _words(kind: str, data: Mapping[str, Any]) -> tuple[str, str]:
    simulated = " (simulated)" if data.get("simulated") is True else ""
    if kind in ("user_message", "assistant_message", "reasoning"):
        return kind.removesuffix("_message"), _text(data.get("content"))
    if kind == "tool_call":
        return f"→ {_text(data.get('toolName')) or '?'}{simulated}", _text(data.get("arguments"))
    if kind == "tool_result":
        exit_code = data.get("exitCode")
        code = f" (exit {exit_code})" if type(exit_code) is int and exit_code else ""
        return f"← {'failed' if data.get('success') is False else 'ok'}{code}{simulated}", _text(data.get("result"))
    if kind == "skill_activation":
        return "skill", f"{_text(data.get('name'))}  {_text(data.get('path'))}"
    if kind == "error":
        code = f" [{_text(data.get('code'))}]" if data.get("code") is not None else ""
        return "error", _text(data.get("message")) + code
    if kind == "token_usage":
        return "tokens", f"in {_text(data.get('inputTokens'))}, out {_text(data.get('outputTokens'))}"
    named = data.get("eventType")
    rest = {key: value for key, value in data.items() if key != "eventType"}
    return _text(named) or kind, _text(rest) if rest else ""


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else compact_json(value)
