"""Events made and copied without validation where their shape is plain.

Nearly all events are, and validating each of them is most of the time that reading a record takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from vally.model.trajectory import Event

_NAMES = {
    "type": "type",
    "timestamp": "timestamp",
    "turn": "turn",
    "agentId": "agent_id",
    "agentName": "agent_name",
    "data": "data",
}
_KEYS = _NAMES.keys()
_UNCHANGING = frozenset({str, int, bool, float, type(None)})
_set = object.__setattr__


def plain_event(value: Mapping[str, Any]) -> Event | None:
    """The event of a record, as validation would make it; None when its shape is not plain and must be validated."""
    if type(value) is not dict or not value.keys() <= _KEYS:
        return None
    kind, data, turn = value.get("type"), value.get("data"), value.get("turn")
    if type(kind) is not str or type(data) is not dict or (turn is not None and type(turn) is not int):
        return None
    moment, agent, name = value.get("timestamp"), value.get("agentId"), value.get("agentName")
    # Only valid Unicode may pass, and whether other text is valid is for validation to find out.
    for text in (kind, moment, agent, name):
        if text is not None and (type(text) is not str or not text.isascii()):
            return None
    try:
        if not "".join(data).isascii():
            return None
    except TypeError:
        return None
    fields = {
        "type": kind,
        "timestamp": moment,
        "turn": turn,
        "agent_id": agent,
        "agent_name": name,
        "data": data.copy(),
    }
    return _made(fields, set(_given(tuple(value))), {})


@lru_cache(maxsize=256)
def _given(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_NAMES[key] for key in keys)


def copied_event(event: Event) -> Event | None:
    """A copy of an event whose data hold texts and numbers, and flat mappings of them; None for any other."""
    if type(event) is not Event or event.__pydantic_extra__:
        return None
    fields = event.__dict__.copy()
    data = fields["data"]
    if type(data) is not dict:
        return None
    copied = data.copy()
    for key, item in data.items():
        if type(item) in _UNCHANGING:
            continue
        if type(item) is not dict or not all(type(value) in _UNCHANGING for value in item.values()):
            return None
        copied[key] = item.copy()
    fields["data"] = copied
    return _made(fields, event.__pydantic_fields_set__.copy(), {})


def _made(fields: dict[str, Any], given: set[str], extra: dict[str, Any]) -> Event:
    event = Event.__new__(Event)
    _set(event, "__dict__", fields)
    _set(event, "__pydantic_fields_set__", given)
    _set(event, "__pydantic_extra__", extra)
    _set(event, "__pydantic_private__", None)
    return event
