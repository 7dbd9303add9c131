"""A trajectory as text: one block per event, its text indented so that no text can look like another block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vally import Event, compact_json, sanitise
from vally_grader_prompt.windows import window

EVENT_LENGTH = 20_000
TIMELINE_LENGTH = 400_000
_LEFT_OUT = "token_usage"
_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE_START = re.compile(f"(?<=[{_BREAKS}])(?=[^{_BREAKS}])")
_HEADER_LENGTH = 200


def timeline(events: Sequence[Event]) -> str:
    """The blocks of all events but token counts; empty when there are none."""
    several_turns = len({event.turn for event in events} - {None}) > 1
    blocks = (_block(index, event, several_turns) for index, event in enumerate(events) if event.type != _LEFT_OUT)
    return window("\n\n".join(blocks), TIMELINE_LENGTH)


def indented(text: str) -> str:
    """A text with each line that is not empty moved to the right."""
    return "    " + _LINE_START.sub("    ", text)


def _block(index: int, event: Event, several_turns: bool) -> str:
    header = f"[{index}] {_word(event.type)}"
    subject = _subject(event)
    if subject:
        header += f" {subject}"
    notes = ", ".join(_notes(event, several_turns))
    if notes:
        header += f" ({notes})"
    text = _text(event)
    return header if text is None else f"{header}\n{indented(window(text, EVENT_LENGTH))}"


def _subject(event: Event) -> str:
    key = {"tool_call": "toolName", "tool_result": "toolName", "skill_activation": "name"}.get(event.type)
    return _word(event.data.get(key)) if key else ""


def _notes(event: Event, several_turns: bool) -> Iterator[str]:
    if event.agent_id is not None:
        yield f"agent {_word(event.agent_id)}" + (f" '{_word(event.agent_name)}'" if event.agent_name else "")
    if several_turns and event.turn is not None:
        yield f"turn {event.turn}"
    if event.data.get("simulated") is True:
        yield "simulated"
    if event.type == "tool_result":
        if event.data.get("success") is False:
            yield "failed"
        if isinstance(event.data.get("exitCode"), int):
            yield f"exit code {event.data['exitCode']}"


def _text(event: Event) -> str | None:
    data = event.data
    if event.type in ("user_message", "assistant_message", "reasoning"):
        return _plain(data.get("content"))
    if event.type == "tool_call":
        return _compact(data.get("arguments", {}))
    if event.type == "tool_result":
        return "(no result)" if data.get("result") is None else _plain(data["result"])
    if event.type == "error":
        return _plain(data.get("message"))
    if event.type in ("turn_start", "turn_end", "skill_activation"):
        return None
    return _compact(data)


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _compact(value)


def _compact(value: object) -> str:
    try:
        return compact_json(value)
    except TypeError:
        return str(value)


def _word(value: object) -> str:
    """A name of the agent's making as a piece of one line."""
    return sanitise("" if value is None else str(value))[:_HEADER_LENGTH]
