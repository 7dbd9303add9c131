"""Trees from plain values, for specs that no YAML file holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vally.spec.diagnostics import escape
from vally.spec.masking import find_holes
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode, Source
from vally.text.numbers import es_number

Positions = Mapping[str, tuple[int, int]]


def nodes_of(value: object, source: Source, positions: Positions | None = None) -> Node:
    """The tree of a JSON-like value; `positions` maps JSON Pointers to line and column, 1-based.

    A value without a position stands where the nearest one around it does. Raises TypeError for what is not JSON.
    """
    return _node(value, source, positions or {}, "", (1, 1))


def _node(value: object, source: Source, positions: Positions, pointer: str, around: tuple[int, int]) -> Node:
    line, column = around = positions.get(pointer, around)
    if isinstance(value, Mapping):
        entries = []
        for name, item in value.items():
            below = f"{pointer}/{escape(str(name))}"
            at = positions.get(below, around)
            key = ScalarNode(source, *at, str(name), '"')
            entries.append(Entry(key, _node(item, source, positions, below, around)))
        mapping = MappingNode(source, line, column, entries)
        mapping.holes_inside = any(entry.value.holes_inside for entry in entries)
        return mapping
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = [_node(item, source, positions, f"{pointer}/{index}", around) for index, item in enumerate(value)]
        sequence = SequenceNode(source, line, column, items)
        sequence.holes_inside = any(item.holes_inside for item in items)
        return sequence
    return _scalar(value, source, line, column)


def _scalar(value: object, source: Source, line: int, column: int) -> ScalarNode:
    if isinstance(value, str):
        scalar = ScalarNode(source, line, column, value, '"')
        scalar.holes = find_holes(value)
        scalar.holes_inside = bool(scalar.holes)
        return scalar
    if value is None or isinstance(value, bool):
        return ScalarNode(source, line, column, {None: "null", True: "true", False: "false"}[value])
    if isinstance(value, int | float):
        text = es_number(value) if math.isfinite(value) else ".nan"
        return ScalarNode(source, line, column, text)
    raise TypeError(f"{type(value).__name__} is not JSON")
