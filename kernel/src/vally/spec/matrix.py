"""The matrix of an experiment: axes with labelled values, whose product makes the variants."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from vally.model.experiment import Axis, AxisValue
from vally.spec.diagnostics import Collector, Place, related
from vally.spec.experiment_keys import AXIS
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.plain_values import plain_value
from vally.spec.pointers import tokens_of
from vally.spec.scalars import is_null
from vally.spec.sections import INVALID, Section, read_section, wrong_type, wrong_value
from vally.spec.settings import Setting
from vally.text.names import name_key

MIN_VARIANTS, MAX_VARIANTS = 2, 256


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an axis."""

    axis: str
    label: str
    label_node: ScalarNode
    setting: Setting


@dataclass(frozen=True, slots=True)
class ReadAxis:
    """One axis; `path_node` is where its pointer stands."""

    axis: Axis
    choices: tuple[Choice, ...]
    path_node: Node


def read_axes(node: Node, axes: Mapping[str, Node], place: Place, collector: Collector) -> list[ReadAxis] | None:
    """The axes in the order of the file, or None when any of them is wrong."""
    read: list[ReadAxis | None] = []
    for key, written in node.entries if isinstance(node, MappingNode) else ():
        name, value = key.text, axes.get(key.text)
        axis = None
        if value is not None:
            where = place.key(name).named(f"matrix.{name}", f"axis '{name}'")
            section = read_section(value, AXIS, where, collector)
            axis = None if section is None else _axis(section, name, collector)
        if not _is_label(name):
            collector.add("invalid-matrix-label", key, place.key(name), name=name)
            read.append(None)
        elif value is not None or not is_null(written):
            read.append(axis)
    found = [axis for axis in read if axis is not None]
    _check_paths(found, place, collector)
    return found if len(found) == len(read) else None


def _check_paths(axes: list[ReadAxis], place: Place, collector: Collector) -> None:
    """Of two axes that set one value the later one wins, so labels of the other tell nothing; mappings are merged."""
    firsts: dict[str, ReadAxis] = {}
    for axis in axes:
        name, path = axis.axis.name, axis.axis.path
        first = firsts.setdefault(path, axis)
        values = [choice.setting.value for choice in (*first.choices, *axis.choices)]
        if first is not axis and not all(isinstance(value, MappingNode) for value in values):
            at, notes = axis.path_node, [related(first.path_node, "first here")]
            where = place.key(name).key("path")
            collector.add("matrix-same-path", at, where, related=notes, first=first.axis.name, second=name, path=path)


def _is_label(text: str) -> bool:
    return bool(text.strip()) and not any(
        character in ",=" or unicodedata.category(character) == "Cc" for character in text
    )


def _axis(section: Section, name: str, collector: Collector) -> ReadAxis | None:
    node, place = section.get("values"), section.place.key("values")
    if node is not None and not isinstance(node, SequenceNode):
        wrong_type(node, place, collector, "a list")
        return None
    if isinstance(node, SequenceNode) and not node.items:
        wrong_value(node, place, collector, "at least one item", value="an empty list")
        return None
    written = [] if node is None else node.items
    items = [_choice(section, name, item, place.item(index), collector) for index, item in enumerate(written)]
    choices = [choice for choice in items if choice is not None]
    unique = _are_unique(choices, place, collector)
    if not items or not unique or len(choices) < len(items) or "path" not in section.values:
        return None
    values = tuple(AxisValue(label=choice.label, value=_plain(choice.setting.value)) for choice in choices)
    return ReadAxis(Axis(name=name, path=section.get("path"), values=values), tuple(choices), section.at("path"))


def _plain(node: Node) -> object:
    plain = plain_value(node)
    return None if plain is INVALID else plain


def _choice(section: Section, axis: str, node: Node, place: Place, collector: Collector) -> Choice | None:
    """One item of `values`: a scalar, whose text is the label, or a mapping from a label to a value."""
    value: Node = node
    if isinstance(node, ScalarNode):
        label = node
    elif isinstance(node, MappingNode) and len(node.entries) == 1:
        label, value = node.entries[0]
    else:
        collector.add("matrix-unlabelled-value", node, place, hint="write {label: value}", axis=axis)
        return None
    if label.unresolved:
        return None
    if not _is_label(label.text):
        collector.add("invalid-matrix-label", label, place, name=label.text)
        return None
    first, *steps = tokens_of(section.get("path", "/"))
    return Choice(axis, label.text, label, Setting(first, tuple(steps), value, section.at("path")))


def _are_unique(choices: list[Choice], place: Place, collector: Collector) -> bool:
    seen: set[str] = set()
    unique = True
    for index, choice in enumerate(choices):
        if name_key(choice.label) in seen:
            unique = False
            where = place.item(index)
            hint = "labels of an axis are unique"
            collector.add("invalid-matrix-label", choice.label_node, where, hint=hint, name=choice.label)
        seen.add(name_key(choice.label))
    return unique


def combinations(axes: list[ReadAxis]) -> list[tuple[Choice, ...]]:
    """The cross product, first axis slowest."""
    return list(itertools.product(*(axis.choices for axis in axes)))


def count(axes: list[ReadAxis]) -> int:
    """How many variants the axes make."""
    return math.prod(len(axis.choices) for axis in axes) if axes else 0


def name_of(labels: Mapping[str, str]) -> str:
    """The name of the variant with these labels by axis."""
    return ",".join(f"{axis}={label}" for axis, label in labels.items())
