"""A schema that allows only what the check of a request accepts, found by trying.

A schema says that a score is a number; which numbers, and how many of them, only the check knows. The grammar of the
model is made of the schema, and a model as small as this one would never guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]
Check = Callable[[Mapping[str, object]], str | None]

MOST_ITEMS = 50
NUMBERS = range(11)
TEXT_BUDGET = 600
"""Characters that all texts of an answer may have together, where possible; the model writes about 100 a second."""
MOST_TOKENS = 4000
_LONGEST_TEXT, _SHORTEST_LIMIT = 80, 12


def narrowed(schema: Schema, check: Check) -> dict[str, Any]:
    """The schema with item counts, numbers and lengths of texts laid down.

    Counts and numbers are left as they are when no combination passes.
    """
    count = next((n for n in range(MOST_ITEMS + 1) if _numbers(schema, check, n)), None)
    numbers = None if count is None else _numbers(schema, check, count)
    items = 1 if count is None else count
    limit = max(_SHORTEST_LIMIT, min(_LONGEST_TEXT, TEXT_BUDGET // max(1, _texts(schema, items))))
    return _constrained(schema, count, numbers, limit)


def longest_answer(schema: Schema) -> int:
    """Tokens that suffice for any answer that a narrowed schema allows, as far as the model can remember so many."""
    return min(MOST_TOKENS, _tokens(schema))


def _tokens(schema: Schema) -> int:
    count = schema.get("maxItems", MOST_ITEMS) if schema.get("type") == "array" else 1
    parts = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    keys = sum(len(key) + 10 for key in schema.get("properties", {}))
    # A character takes at most four tokens, one per byte; hardly any takes more than one.
    own = 2 * schema.get("maxLength", 0) if schema.get("type") == "string" else 20
    return int(count * (own + keys + sum(map(_tokens, parts))))


def _numbers(schema: Schema, check: Check, count: int) -> list[int]:
    return [number for number in NUMBERS if check(_example(schema, count, number)) is None]


def _example(schema: Schema, count: int, number: int) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {key: _example(part, count, number) for key, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_example(schema.get("items", {}), count, number) for _ in range(count)]
    return {"string": "x", "boolean": False}.get(str(kind), number)


def _constrained(schema: Schema, count: int | None, numbers: list[int] | None, limit: int) -> dict[str, Any]:
    found = {key: value for key, value in schema.items() if key != "description"}
    if "enum" in schema:
        return found
    kind = schema.get("type")
    if kind == "object":
        parts = schema.get("properties", {})
        found["properties"] = {key: _constrained(part, count, numbers, limit) for key, part in parts.items()}
    elif kind == "array":
        found["items"] = _constrained(schema.get("items", {}), count, numbers, limit)
        found |= {} if count is None else {"minItems": count, "maxItems": count}
    elif kind == "string":
        found["maxLength"] = limit
    elif kind in ("number", "integer") and numbers:
        return {"enum": numbers}
    return found


def _texts(schema: Schema, count: int) -> int:
    kind = schema.get("type")
    if kind == "object":
        return sum(_texts(part, count) for part in schema.get("properties", {}).values())
    if kind == "array":
        return count * _texts(schema.get("items", {}), count)
    return int(kind == "string" and "enum" not in schema)
