"""Where the value at a JSON Pointer stands."""

from __future__ import annotations

from vally.model.evalspec import Position
from vally.spec.nodes import MappingNode, Node, SequenceNode


def position_below(tree: Node | None, pointer: str) -> Position | None:
    """The position of the value at a pointer, or of the innermost value around it that is there."""
    node = tree
    for step in pointer.split("/")[1:]:
        found = None if node is None else _below(node, step.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        node = found
    return None if node is None else Position(file=node.source.display, line=node.line, column=node.column)


def _below(node: Node, step: str) -> Node | None:
    if isinstance(node, MappingNode):
        return node.get(step)
    if isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.items):
        return node.items[int(step)]
    return None
