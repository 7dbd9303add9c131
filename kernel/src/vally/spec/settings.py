"""What variants set: trees laid over the trees of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.scalars import is_null

EXECUTOR = "executor"


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One change: a value at the steps of a pointer below a root key of the spec; `at` is where it was said."""

    key: str
    steps: tuple[str, ...]
    value: Node
    at: Node


def merge_nodes(base: Node | None, over: Node) -> Node:
    """Mappings merge deeply, null deletes, anything else replaces; every node keeps the position it was written at."""
    if not isinstance(over, MappingNode):
        return over
    entries = {entry.key.text: entry for entry in base.entries} if isinstance(base, MappingNode) else {}
    for key, value in over.entries:
        if is_null(value):
            entries.pop(key.text, None)
        else:
            below = entries.get(key.text)
            entries[key.text] = Entry(key, merge_nodes(below.value if below else None, value))
    return MappingNode(over.source, over.line, over.column, list(entries.values()))


def nested(base: Node | None, steps: Sequence[str], value: Node, at: Node) -> Node:
    """What to merge over a tree so that the value stands at some steps below it.

    An item of a list is reached by its number; the whole list is replaced then. Made mappings stand at `at`.
    """
    if not steps:
        return value
    step, *rest = steps
    if isinstance(base, SequenceNode) and step.isascii() and step.isdigit() and int(step) < len(base.items):
        items = list(base.items)
        items[int(step)] = merge_nodes(items[int(step)], nested(items[int(step)], rest, value, at))
        return SequenceNode(base.source, base.line, base.column, items)
    below = base.get(step) if isinstance(base, MappingNode) else None
    return _mapping(at, step, nested(below, rest, value, at))


def _mapping(at: Node, key: str, value: Node) -> MappingNode:
    name = ScalarNode(at.source, at.line, at.column, key, '"')
    return MappingNode(at.source, at.line, at.column, [Entry(name, value)])


def lay_over_defaults(base: MappingNode | None, setting: Setting) -> MappingNode:
    """`defaults` with a setting: keys are replaced as a whole, unless the setting lies deeper than a key."""
    over = _whole_keys(base, setting)
    entries = {entry.key.text: entry for entry in base.entries} if base is not None else {}
    entries.update({key.text: Entry(key, value) for key, value in over.entries if not is_null(value)})
    return MappingNode(over.source, over.line, over.column, list(entries.values()))


def _whole_keys(base: MappingNode | None, setting: Setting) -> MappingNode:
    if not setting.steps:
        # What is no mapping was reported.
        return setting.value if isinstance(setting.value, MappingNode) else _empty(setting.at)
    first, *deeper = setting.steps
    if not deeper:
        return _mapping(setting.at, first, setting.value)
    below = base.get(first) if base is not None else None
    if first == EXECUTOR and isinstance(below, ScalarNode) and not is_null(below):
        below = _mapping(below, "name", below)
    return _mapping(setting.at, first, merge_nodes(below, nested(below, deeper, setting.value, setting.at)))


def _empty(at: Node) -> MappingNode:
    return MappingNode(at.source, at.line, at.column, [])
