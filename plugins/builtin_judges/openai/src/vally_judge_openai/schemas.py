"""JSON Schemas as endpoints want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_strict(schema: object) -> bool:
    """Whether an endpoint can follow a schema to the letter: every object names all its keys and requires them."""
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(properties):
            return False
        return all(map(is_strict, properties.values()))
    alternatives = schema.get("anyOf") or ()
    return is_strict(schema.get("items")) and all(map(is_strict, alternatives))
