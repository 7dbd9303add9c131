"""Which values of a config are patterns is read off its model."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, Field

from vally import Config, Pattern, ToolPatterns, pattern_values


class Part(Config):
    name: Pattern
    args: dict[str, Pattern] | None = None
    note: str = ""


def _parts(value: Any) -> Any:
    return value


class Whole(Config):
    pattern: Pattern | None = None
    text: str = ""
    parts: Annotated[list[Part], BeforeValidator(_parts)] = Field(default_factory=list)
    tools: ToolPatterns | None = None
    inner: Part | None = None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pattern": "a", "text": "b"}, [(("pattern",), "a")]),
        ({"tools": ["a", "b"]}, [(("tools", 0), "a"), (("tools", 1), "b")]),
        ({"tools": "a"}, [(("tools",), "a")]),
        ({"parts": ["a", {"name": "b", "note": "c"}]}, [(("parts", 0), "a"), (("parts", 1, "name"), "b")]),
        ({"inner": {"name": "a", "args": {"k": "v"}}}, [(("inner", "name"), "a"), (("inner", "args", "k"), "v")]),
        ({"pattern": 3, "parts": 4, "tools": None, "inner": [], "more": "y"}, []),
    ],
)
def test_patterns_are_found_at_their_places(config: dict[str, Any], expected: list[Any]) -> None:
    assert list(pattern_values(Whole, config)) == expected


def test_without_a_model_nothing_is_a_pattern() -> None:
    assert list(pattern_values(None, {"pattern": "a"})) == []
