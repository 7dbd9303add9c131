"""`${eval.parent}` and `${eval.grandparent}`: names of directories above an eval file, in what variants set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from vally.spec.diagnostics import Collector, Place
from vally.spec.masking import find_holes
from vally.spec.nodes import Entry, Hole, MappingNode, Node, ScalarNode, SequenceNode, scalars
from vally.spec.placeholders import is_variable

NAMES = ("eval.parent", "eval.grandparent")
_HINT = "there are ${eval.parent} and ${eval.grandparent}"


def check_variables(node: Node, place: Place, collector: Collector) -> None:
    """Report variables that do not exist."""
    for scalar in scalars(node) if node.holes_inside else ():
        for hole in scalar.holes:
            if is_variable(hole) and hole.name not in NAMES and not hole.escaped:
                collector.add("unknown-variable", scalar, place, hint=_HINT, name=hole.name)


def variables_of(display: str) -> dict[str, str]:
    """The variables of an eval file by its path as messages name it; one without such a directory is left out."""
    names = [parent.name for parent in PurePosixPath(display).parents]
    return {variable: name for variable, name in zip(NAMES, names, strict=False) if name}


@dataclass(frozen=True, slots=True)
class VariableFiller:
    """Fills the variables of one eval, named as in messages. A filled scalar is a string."""

    display: str
    values: Mapping[str, str]
    collector: Collector

    def fill(self, node: Node) -> Node:
        """The tree with its variables filled; what has none is shared."""
        if not node.holes_inside:
            return node
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            return SequenceNode(node.source, node.line, node.column, [self.fill(item) for item in node.items])
        assert isinstance(node, MappingNode)
        entries = [Entry(key, self.fill(value)) for key, value in node.entries]
        return MappingNode(node.source, node.line, node.column, entries)

    def _scalar(self, node: ScalarNode) -> ScalarNode:
        copy = ScalarNode(node.source, node.line, node.column, "", node.style or '"', "str")
        copy.original = node.original if node.original is not None else node.text
        copy.text = self._filled(node.text, node.holes)
        copy.written = None if node.written is None else self._filled(node.written, find_holes(node.written))
        missing = [hole for hole in node.holes if self._value(hole) is None]
        copy.unresolved = node.unresolved or bool(missing)
        for hole in missing:
            # Names that do not exist were reported with the file.
            if hole.name in NAMES:
                self.collector.add("unresolved-variable", node, name=hole.name, file=self.display)
        return copy

    def _value(self, hole: Hole) -> str | None:
        if hole.escaped:
            return f"${{{hole.name}}}" if hole.default is None else f"${{{hole.name}={hole.default}}}"
        return self.values.get(hole.name, hole.default)

    def _filled(self, text: str, holes: tuple[Hole, ...]) -> str:
        pieces, end = [], 0
        for hole in holes:
            value = self._value(hole) if is_variable(hole) else None
            pieces += [text[end : hole.start], text[hole.start : hole.end] if value is None else value]
            end = hole.end
        return "".join((*pieces, text[end:]))
