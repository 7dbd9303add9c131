"""JSON Pointers to the parts of a spec that a variant may change."""

from __future__ import annotations

import re
from typing import Any

from vally.spec.diagnostics import Collector, Place, escape
from vally.spec.nodes import Node
from vally.spec.sections import INVALID
from vally.spec.shapes import read_text

VARIED_KEYS = ("defaults", "environment", "agent_environment")
_OLD, _NEW = "/config", "/defaults"
POINTER_PATTERN = rf"/(?:{'|'.join(VARIED_KEYS)})(?:/(?:[^~/]|~[01])*)*"
_POINTER = re.compile(POINTER_PATTERN, re.DOTALL)


class PointerShape:
    """A JSON Pointer at or below `/defaults`, `/environment` or `/agent_environment`; `/config` is an older name."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        text = read_text(node, place, collector)
        if text is INVALID:
            return INVALID
        pointer = text
        if text == _OLD or text.startswith(f"{_OLD}/"):
            pointer = _NEW + text.removeprefix(_OLD)
        if not _POINTER.fullmatch(pointer):
            collector.add("invalid-vary-path", node, place, path=text)
            return INVALID
        if pointer != text:
            collector.add("deprecated-key", node, place, old=text, new=pointer)
        return pointer


def tokens_of(pointer: str) -> tuple[str, ...]:
    """The steps of a JSON Pointer."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def pointer_of(tokens: tuple[str, ...]) -> str:
    """The JSON Pointer of some steps."""
    return "".join(f"/{escape(token)}" for token in tokens)


def covers(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Whether the second pointer lies at or below the first one."""
    return inner[: len(outer)] == outer
