"""Drift: differences between the variants of an eval that `vary` does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally.model.evalspec import Related
from vally.spec.codes import cut
from vally.spec.diagnostics import Collector, Place, related
from vally.spec.hashing import HIDDEN, SECRET_MAPS, portable
from vally.spec.nodes import MappingNode, Node, SequenceNode
from vally.spec.pointers import covers, pointer_of
from vally.text.numbers import compact_json

Steps = tuple[str, ...]
ABSENT = object()
_ENVIRONMENTS = ("environment", "agent_environment")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant of an eval as it is compared.

    `parts` has `defaults` and the root environments, `stimuli` the effective environment of each stimulus; `trees` are
    the trees of the parts by key and `nodes` those of the stimuli, for positions. `node` is where the variant stands.
    """

    name: str
    node: Node
    parts: Mapping[str, Any]
    stimuli: Sequence[Any]
    trees: Mapping[str, Node | None]
    nodes: Sequence[Node]

    def value(self, steps: Steps) -> Any:
        """The value at a pointer, or ABSENT."""
        if steps[0] == "stimuli":
            return _value({"environment": self.stimuli[int(steps[1])]}, steps[2:])
        return _value(self.parts, steps)

    def at(self, steps: Steps) -> Node:
        """The innermost node that contributed what stands at a pointer."""
        if steps[0] == "stimuli":
            return self.nodes[int(steps[1])]
        node = self.trees.get(steps[0]) or self.node
        for step in steps[1:]:
            found = _child(node, step)
            if found is None:
                break
            node = found
        return node


def _child(node: Node, step: str) -> Node | None:
    if isinstance(node, MappingNode):
        return node.get(step)
    if isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.items):
        return node.items[int(step)]
    return None


def _value(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = _below(value, step)
    return value


def _below(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, ABSENT)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return ABSENT


def check_drift(
    variants: Sequence[Compared], vary: Sequence[Steps], root: Path, collector: Collector, context: str
) -> None:
    """Compare every variant of one eval with the first; `root` is the directory that shown paths start from."""
    for other in variants[1:]:
        found = list(_outside(variants[0], other, vary))
        if found:
            _report(variants[0], other, found, root, collector, context)


def _outside(first: Compared, other: Compared, vary: Sequence[Steps]) -> Iterator[Steps]:
    known = list(vary)
    for key in ("defaults", *_ENVIRONMENTS):
        for steps in _differences(first.parts.get(key, {}), other.parts.get(key, {}), (key,), vary):
            known.append(steps)
            yield steps
    # A stimulus differs wherever the root does; only what is its own is news.
    allowed = [("environment", *steps[1:]) for steps in known if steps[0] in _ENVIRONMENTS]
    for index, (mine, theirs) in enumerate(zip(first.stimuli, other.stimuli, strict=True)):
        for steps in _differences(mine, theirs, ("environment",), allowed):
            yield ("stimuli", str(index), *steps)


def _differences(mine: Any, theirs: Any, steps: Steps, allowed: Sequence[Steps]) -> Iterator[Steps]:
    """The innermost pointers at which two values differ, lists as a whole, apart from what is allowed to."""
    if mine is theirs or mine == theirs or any(covers(pointer, steps) for pointer in allowed):
        return
    keys: list[str] | None = None
    pair = [{} if value is ABSENT else value for value in (mine, theirs)]
    if all(isinstance(value, Mapping) for value in pair):
        keys = list(dict.fromkeys((*pair[0], *pair[1])))
    elif all(isinstance(value, list) for value in pair) and len(pair[0]) == len(pair[1]):
        is_inside = any(covers(steps, pointer) for pointer in allowed)
        keys = [str(index) for index in range(len(pair[0]))] if is_inside else None
    if keys is None:
        yield steps
        return
    for key in keys:
        yield from _differences(_below(pair[0], key), _below(pair[1], key), (*steps, key), allowed)


def _report(
    first: Compared, other: Compared, found: list[Steps], root: Path, collector: Collector, context: str
) -> None:
    pointers = [pointer_of(steps) for steps in found]
    text = ", ".join(pointers[:_SHOWN])
    if len(pointers) > _SHOWN:
        text += f" and {len(pointers) - _SHOWN} more"
    contributing = [variant.at(found[0]) for variant in (other, first) if variant.value(found[0]) is not ABSENT]
    at = next((node for node in contributing if node.source is other.node.source), other.node)
    notes = [note for steps in found[:_SHOWN] for note in _notes(first, other, steps, root)]
    place = Place(pointers[0], context=context)
    collector.add("experiment-drift", at, place, related=notes, first=first.name, second=other.name, pointers=text)


def _notes(first: Compared, other: Compared, steps: Steps, root: Path) -> Iterator[Related]:
    """Both values of a difference, each where it was written."""
    for variant in (first, other):
        value = _shown(variant.value(steps), steps, root)
        yield related(variant.at(steps), f"{pointer_of(steps)} is {value} in variant '{variant.name}'")


def _shown(value: Any, steps: Steps, root: Path) -> str:
    if value is ABSENT:
        return "absent"
    if len(steps) > 1 and steps[-2] in SECRET_MAPS:
        return HIDDEN
    return cut(compact_json(portable(value, root)))


def is_used(steps: Steps, variants: Sequence[Compared]) -> bool:
    """Whether any two variants of an eval differ at or below a pointer, or at what it means for a stimulus."""
    first, *others = variants
    value = first.value(steps)
    if any(other.value(steps) != value for other in others):
        return True
    return steps[0] in _ENVIRONMENTS and any(
        mine is not theirs and _value(mine, steps[1:]) != _value(theirs, steps[1:])
        for other in others
        for mine, theirs in zip(first.stimuli, other.stimuli, strict=True)
    )
