"""Trees as plain data: dicts, lists and scalars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.scalars import describe, scalar_value
from vally.spec.sections import INVALID, wrong_type

_FINITE = "a number between -(2^53 - 1) and 2^53 - 1"


def read_plain(node: Node, place: Place, collector: Collector, *, written: bool = False) -> Any:
    """The value of a tree as dicts, lists and scalars, a new one on each call; INVALID when a number is not finite.

    With `written` process variables appear as their placeholders.
    """
    value = plain_value(node, written=written)
    if value is INVALID:
        _report_infinite(node, place, collector)
    return value


def plain_value(node: Node, *, written: bool = False) -> Any:
    """Like read_plain without a word about what is wrong."""
    if isinstance(node, ScalarNode):
        if node.unresolved:
            return INVALID
        value = scalar_value(node)
        if isinstance(value, float) and not math.isfinite(value):
            return INVALID
        return node.written if written and node.written is not None else value
    broken = False
    if isinstance(node, SequenceNode):
        items = []
        for item in node.items:
            value = plain_value(item, written=written)
            items.append(value)
            broken = broken or value is INVALID
        return INVALID if broken else items
    assert isinstance(node, MappingNode)
    mapping = {}
    for key, item in node.entries:
        value = mapping[key.text] = plain_value(item, written=written)
        broken = broken or value is INVALID
    return INVALID if broken else mapping


def unreadable(node: Node, key: str) -> str:
    """Why a tree has no value: the first part without one, named by its keys below `key`."""
    name, found = next(_without_value(node, key), (key, node))
    if isinstance(found, ScalarNode) and found.unresolved:
        return f"'{name}' has a placeholder without a value"
    return f"'{name}' must be {_FINITE}, got {describe(found)}"


def _without_value(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _without_value(item, f"{key}[{index}]")
    elif isinstance(node, MappingNode):
        for name, item in node.entries:
            yield from _without_value(item, f"{key}.{name.text}" if key else name.text)
    elif plain_value(node) is INVALID:
        yield key, node


def _report_infinite(node: Node, place: Place, collector: Collector) -> None:
    """Report every number in a tree that is not finite."""
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            _report_infinite(item, place.item(index), collector)
    elif isinstance(node, MappingNode):
        for key, item in node.entries:
            _report_infinite(item, place.key(key.text), collector)
    elif plain_value(node) is INVALID and not (isinstance(node, ScalarNode) and node.unresolved):
        wrong_type(node, place, collector, _FINITE)
