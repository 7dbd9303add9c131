"""Events of the runtime in their own form: as they come from the SDK, and as the runtime keeps them in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vally import parse_timestamp, timestamp

Native = Mapping[str, Any]
"""`{id, type, timestamp, parentId, agentId?, ephemeral?, data}`; `data` is a mapping."""

PROMPT = "vally.prompt"
"""Type of the event that stands for a prompt that was sent; it never comes from the runtime."""

_UNKNOWN = "unknown"
_HALVES = re.compile("[\ud800-\udfff]")


def live_event(event: Any) -> tuple[Native, bool]:
    """An event of the SDK in the runtime's form, and whether the SDK knows its type."""
    told = event.to_dict()
    moment = parse_timestamp(told.get("timestamp"))
    return {**with_data(told), "timestamp": timestamp(moment)}, event.type.value != _UNKNOWN


def with_data(event: Native) -> Native:
    """An event as it was told, its `data` an empty mapping when it is none."""
    return event if isinstance(event.get("data"), dict) else {**event, "data": {}}


def prompt_event(content: str, attachments: list[str]) -> Native:
    """A prompt that is sent now."""
    return {"type": PROMPT, "timestamp": timestamp(), "data": {"content": content, "attachments": attachments}}


def session_file(copilot_home: Path, session_id: str) -> Path:
    """Where the runtime keeps the events of a session."""
    return copilot_home / "session-state" / session_id / "events.jsonl"


def is_own(path: Path) -> bool:
    """Whether a session file is a file, where it seems to be: an agent may have left a link or a pipe in its place."""
    home = path.parents[2]
    return path.is_file() and path.resolve() == home.resolve() / path.relative_to(home)


def read_session(path: Path) -> list[Native]:
    """The events that the runtime has written so far; lines that are not whole are left out."""
    if not is_own(path):
        return []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    return [event for event in map(_parsed, lines) if event is not None]


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a character, for which the runtime would ignore the whole message."""
    return _HALVES.sub("\ufffd", text)


def of_main_agent(event: Native) -> bool:
    """Whether an event belongs to the agent itself, not to one that it started."""
    return not event.get("agentId")


def _parsed(line: bytes) -> Native | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    return with_data(value)
