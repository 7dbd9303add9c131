"""Equality of JSON values."""

from __future__ import annotations

from typing import Any


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal all the way down: 1 equals 1.0, true does not equal 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)
