"""Findings about the variants of an eval: which variants they concern, and where in the experiment file they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from vally.model.evalspec import Diagnostic
from vally.spec.diagnostics import escape
from vally.spec.nodes import MappingNode, Node, SequenceNode

_NAMED = 3
Positions = Mapping[tuple[int, int], list[str]]


def positions_of(tree: Node) -> Positions:
    """The JSON Pointers of everything that stands at a line and column of a file, outermost first."""
    found: dict[tuple[int, int], list[str]] = {}
    for node, pointer in _walk(tree, ""):
        pointers = found.setdefault((node.line, node.column), [])
        if pointer not in pointers:
            pointers.append(pointer)
    return found


def _walk(node: Node, pointer: str) -> Iterator[tuple[Node, str]]:
    yield node, pointer
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            below = f"{pointer}/{escape(key.text)}"
            yield key, below
            yield from _walk(value, below)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _walk(item, f"{pointer}/{index}")


def with_pointer(item: Diagnostic, positions: Positions) -> Diagnostic:
    """A finding at a merged tree with the pointer of the file that it stands in."""
    candidates = positions.get((item.line or 0, item.column or 0))
    pointer = item.pointer or ""
    if not candidates or pointer in candidates or _parent(pointer) in candidates:
        return item
    return replace(item, pointer=_likely(pointer, candidates))


def _likely(pointer: str, candidates: list[str]) -> str:
    last = pointer.rsplit("/", 1)[-1]
    same = next((candidate for candidate in candidates if candidate.rsplit("/", 1)[-1] == last), None)
    if same is not None:
        return same
    # What is missing stands at the mapping that lacks it.
    outer = _parent(pointer).rsplit("/", 1)[-1]
    lacking = next((candidate for candidate in candidates if outer and candidate.rsplit("/", 1)[-1] == outer), None)
    return candidates[0] if lacking is None else f"{lacking}/{last}"


def _parent(pointer: str) -> str:
    return pointer.rpartition("/")[0]


@dataclass(slots=True)
class VariantFindings:
    """Collects the findings of the variants of one eval, equal ones once."""

    found: dict[Diagnostic, list[str]] = field(default_factory=dict)

    def add(self, variant: str, diagnostics: Iterable[Diagnostic]) -> None:
        """Add what was found of one variant."""
        for item in diagnostics:
            self.found.setdefault(item, []).append(variant)

    def result(self, variants: int) -> Iterator[Diagnostic]:
        """All findings; one that not all variants have names those that do."""
        for item, names in self.found.items():
            if len(names) == variants:
                yield item
                continue
            shown = ", ".join(f"'{name}'" for name in names[:_NAMED])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            who = f"variant{'s' if len(names) > 1 else ''} {shown}{more}"
            yield replace(item, context=f"{who}, {item.context}" if item.context else who)
