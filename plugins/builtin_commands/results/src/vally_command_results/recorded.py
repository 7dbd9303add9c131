"""Parts of records, which may have any shape: records of others are shown as far as they can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally import parse_timestamp


def mapping(value: object) -> Mapping[str, Any]:
    """A mapping, empty for anything else."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """A list, empty for anything else."""
    return value if isinstance(value, list) else []


def milliseconds(value: object) -> float | None:
    """A time in milliseconds since the epoch."""
    moment = parse_timestamp(value) if isinstance(value, str) else None
    return None if moment is None else moment.timestamp() * 1000


def succeeded(answer: Mapping[str, Any]) -> bool:
    """Whether the data of a tool result say that the call succeeded."""
    success = answer.get("success")
    return success if isinstance(success, bool) else answer.get("isError") is not True
