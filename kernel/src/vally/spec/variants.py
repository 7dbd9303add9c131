"""The variants of an experiment file: as written, or made from its matrix; and which one is the baseline."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally.model.experiment import Variant
from vally.spec.diagnostics import Collector, Place
from vally.spec.experiment_keys import VARIANT
from vally.spec.matrix import (
    MAX_VARIANTS,
    MIN_VARIANTS,
    Choice,
    ReadAxis,
    combinations,
    count,
    name_of,
    read_axes,
)
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.plain_values import plain_value
from vally.spec.sections import INVALID, Section, read_section, wrong_type
from vally.spec.settings import Setting
from vally.spec.shapes import TextOfScalar
from vally.text.names import name_key
from vally.text.suggest import did_you_mean

MAX_NAME = 120
_LABEL = TextOfScalar(silent=True)


@dataclass(frozen=True, slots=True)
class ReadVariant:
    """One variant with its changes in order; `node` is where it stands."""

    variant: Variant
    settings: tuple[Setting, ...]
    node: Node


_AN_EVAL = "it looks like an eval, which an experiment names under 'evals' and 'vally eval -e FILE' runs alone"


@dataclass(frozen=True, slots=True)
class ReadVariants:
    """All variants of a file; `axes` are those of a matrix. What is wrong leaves `variants` empty."""

    variants: tuple[ReadVariant, ...] = ()
    axes: tuple[ReadAxis, ...] = ()


def read_variants(section: Section, collector: Collector) -> ReadVariants:
    """The variants of the root section of an experiment file."""
    written = [key for key in ("variants", "matrix") if key in section.written]
    if len(written) != 1:
        second = max(written, key=lambda key: _position(section.keys[key]), default=None)
        at = section.node if second is None else section.keys[second]
        place = section.place if second is None else section.place.key(second)
        hint = _AN_EVAL if any(section.node.get(key) for key in ("stimuli", "stimuli_from")) else None
        collector.add("experiment-variants-or-matrix", at, place, hint=hint)
        return ReadVariants()
    if written == ["matrix"]:
        return _of_matrix(section, collector)
    return _written(section, collector)


def _position(node: Node) -> tuple[int, int]:
    return node.line, node.column


def _count_is_wrong(number: int, section: Section, key: str, collector: Collector) -> bool:
    if MIN_VARIANTS <= number <= MAX_VARIANTS:
        return False
    collector.add("variant-count", section.at(key), section.place.key(key), count=number)
    return True


def _written(section: Section, collector: Collector) -> ReadVariants:
    node, place = section.at("variants"), section.place.key("variants")
    if not isinstance(node, MappingNode):
        return ReadVariants()
    _count_is_wrong(len(node.entries), section, "variants", collector)
    values: Mapping[str, Node | None] = section.get("variants", {})
    names: dict[str, str] = {}
    read = []
    for key, _ in node.entries:
        name = key.text
        same = name_key(name).casefold()
        if not _is_name(name) or same in names:
            hint = f"names differ by more than case; there is '{names[same]}'" if _is_name(name) else None
            collector.add("invalid-variant-name", key, place.key(name), hint=hint, name=name)
        if name in values:
            where = place.key(name).named(f"variants.{name}", f"variant '{name}'")
            read.append(_variant(name, values[name], key, where, collector))
        names.setdefault(same, name)
    return ReadVariants(tuple(read))


def _is_name(name: str) -> bool:
    return (
        1 <= len(name) <= MAX_NAME
        and not any(unicodedata.category(char) == "Cc" for char in name)
        and bool(name.strip())
    )


def _variant(name: str, value: Node | None, key: Node, place: Place, collector: Collector) -> ReadVariant:
    section = None if value is None else read_section(value, VARIANT, place, collector)
    if section is None:
        return ReadVariant(Variant(name=name), (), key)
    settings = []
    for written, target in (
        ("overrides", "defaults"),
        ("environment", "environment"),
        ("agent_environment", "agent_environment"),
    ):
        if written in section.values:
            value = section.written[written]
            settings.append(Setting(target, (), value, section.keys[written]))
    return ReadVariant(_described(name, settings, section.get("description")), tuple(settings), key)


def _of_matrix(section: Section, collector: Collector) -> ReadVariants:
    node, place = section.at("matrix"), section.place.key("matrix")
    if "matrix" not in section.values:
        return ReadVariants()
    axes = read_axes(node, section.get("matrix"), place, collector)
    if axes is None or _count_is_wrong(count(axes), section, "matrix", collector):
        return ReadVariants(axes=tuple(axes or ()))
    variants = tuple(_combined(choices, section.keys["matrix"]) for choices in combinations(axes))
    return ReadVariants(variants, tuple(axes))


def _combined(choices: Sequence[Choice], node: Node) -> ReadVariant:
    labels = {choice.axis: choice.label for choice in choices}
    settings = tuple(choice.setting for choice in choices)
    return ReadVariant(_described(name_of(labels), settings, None, labels), settings, node)


def _described(
    name: str, settings: Iterable[Setting], description: str | None, labels: Mapping[str, str] | None = None
) -> Variant:
    """The variant as data."""
    changes: dict[str, Any] = {}
    for setting in settings:
        plain = plain_value(setting.value)
        _put(changes, (setting.key, *setting.steps), None if plain is INVALID else plain)
    return Variant(
        name=name,
        description=description,
        overrides=changes.get("defaults") or {},
        environment=changes.get("environment"),
        agent_environment=changes.get("agent_environment"),
        labels=labels or {},
    )


def _put(mapping: dict[str, Any], steps: Sequence[str], value: object) -> None:
    step, *deeper = steps
    if not deeper:
        mapping[step] = value
        return
    if not isinstance(mapping.get(step), dict):
        mapping[step] = {}
    _put(mapping[step], deeper, value)


def read_baseline(section: Section, read: ReadVariants, collector: Collector) -> str | None:
    """The name of the baseline, written as such or, with a matrix, as the label of each axis."""
    node, place = section.get("baseline"), section.place.key("baseline")
    if node is None:
        return None
    names = [item.variant.name for item in read.variants]
    if isinstance(node, MappingNode) and "matrix" in section.written:
        return _of_labels(node, read, place, collector)
    if not isinstance(node, ScalarNode):
        wrong_type(node, place, collector, "the name of a variant")
        return None
    name = _LABEL.read(node, place, collector)
    if name is INVALID:
        return None
    same = _same(str(name), names)
    if same is None and read.variants:
        _unknown(str(name), names, node, place, collector)
    return same


def _same(name: str, names: Iterable[str]) -> str | None:
    """The one of the names that this is, however its letters are composed."""
    return next((known for known in names if name_key(known) == name_key(name)), None)


def _of_labels(node: MappingNode, read: ReadVariants, place: Place, collector: Collector) -> str | None:
    labels: dict[str, str] = {}
    for key, value in node.entries:
        text = _LABEL.read(value, place.key(key.text), collector)
        if text is INVALID:
            return None
        axis = _same(key.text, (item.axis.name for item in read.axes)) or key.text
        labels[axis] = text
    if not read.variants:
        return None
    known = {axis.axis.name: [choice.label for choice in axis.choices] for axis in read.axes}
    ordered = {axis: _same(labels[axis], known[axis]) or labels[axis] for axis in known if axis in labels}
    extra = next((axis for axis in labels if axis not in known), None)
    wrong = next((axis for axis in ordered if ordered[axis] not in known[axis]), None)
    if extra is not None:
        _unknown(name_of({extra: labels[extra]}), known, node.key(extra) or node, place.key(extra), collector, extra)
    elif wrong is not None:
        name = name_of(ordered)
        _unknown(name, known[wrong], node.get(wrong) or node, place.key(wrong), collector, ordered[wrong])
    elif len(ordered) < len(known):
        _unknown(name_of(ordered), [item.variant.name for item in read.variants], node, place, collector)
    else:
        return name_of(ordered)
    return None


def _unknown(
    name: str, candidates: Iterable[str], node: Node, place: Place, collector: Collector, word: str | None = None
) -> None:
    collector.add("unknown-baseline", node, place, hint=did_you_mean(word or name, candidates), name=name)
