"""An experiment file: reading it, checking what it sets, and the evals it names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally.model.experiment import ExperimentConfig
from vally.spec import paths
from vally.spec.diagnostics import Collector, Place
from vally.spec.eval_variables import check_variables
from vally.spec.experiment_keys import EXPERIMENT, EXPERIMENT_RULE, VARIANTS_RULE, axis_rule
from vally.spec.files import SPEC_BYTES
from vally.spec.hashing import hash_of, portable
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode
from vally.spec.placeholders import SETTING, Filler, rule_below
from vally.spec.plain_values import plain_value
from vally.spec.pointer_positions import position_below
from vally.spec.reader import read_mapping
from vally.spec.sections import INVALID, Section, read_section
from vally.spec.setting_checks import check_setting
from vally.spec.settings import Setting
from vally.spec.variants import ReadVariant, ReadVariants, read_baseline, read_variants
from vally.text.globs import InvalidGlob, expand_glob

EVAL_NAMES = ("eval.yaml", "eval.yml")
"""What a directory stands for."""


@dataclass(frozen=True, slots=True)
class VaryPointer:
    """What may differ between variants, and where that is said."""

    pointer: str
    node: Node
    place: Place


@dataclass(slots=True)
class ReadExperiment:
    """An experiment file with the trees that its variants lay over specs."""

    tree: MappingNode
    config: ExperimentConfig
    overrides: Setting | None
    variants: tuple[ReadVariant, ...]
    vary: tuple[VaryPointer, ...]


def read_experiment_file(loading: Loading) -> ReadExperiment | None:
    """Read the file of a load; None when it has no usable structure."""
    collector = loading.collector
    written = read_mapping(loading.source, SPEC_BYTES, collector, "an experiment file")
    tree = None if written is None else _filled(loading, written)
    section = None if tree is None else read_section(tree, EXPERIMENT, Place(), collector)
    if tree is None or section is None:
        return None
    read = read_variants(section, collector)
    overrides = _overrides(section)
    _check_settings(loading, section, read, overrides)
    vary = tuple(_vary(section, read, collector))
    config = ExperimentConfig(
        name=section.get("name") or loading.source.display,
        path=loading.source.path,
        display_path=loading.source.display,
        description=section.get("description"),
        version=section.get("version"),
        evals=tuple(section.get("evals", ())),
        eval_files=_eval_files(loading, section),
        vary=tuple(item.pointer for item in vary),
        variants=tuple(item.variant for item in read.variants),
        axes=tuple(item.axis for item in read.axes),
        baseline=read_baseline(section, read, collector),
        baseline_position=position_below(tree, "/baseline") if "baseline" in section.values else None,
        overrides={} if overrides is None else _plain(overrides.value),
        workers=section.get("execution").get("workers") if "execution" in section.values else None,
        metadata=section.get("metadata", {}),
        experiment_hash=hash_of(portable(_plain(tree), loading.project.root)),
    )
    return ReadExperiment(tree, config, overrides, read.variants, vary)


def _plain(node: Node) -> Any:
    plain = plain_value(node, written=True)
    return {} if plain is INVALID else plain


def _filled(loading: Loading, tree: MappingNode) -> MappingNode:
    """The tree with its placeholders filled; variables of evals stay in variants and matrix."""
    inside = Filler(loading.parameters, loading.collector, variables=True)
    entries = []
    for key, value in tree.entries:
        place = Place().key(key.text)
        if key.text in ("variants", "matrix"):
            rule = VARIANTS_RULE if key.text == "variants" else _matrix_rule(loading, value)
            value = inside.fill(value, rule, place)
            check_variables(value, place, loading.collector)
        else:
            value = loading.filler.fill(value, rule_below(EXPERIMENT_RULE, key.text), place)
        entries.append(Entry(key, value))
    return MappingNode(tree.source, tree.line, tree.column, entries)


def _matrix_rule(loading: Loading, node: Node) -> Mapping[str, object]:
    """The rule of each axis follows from what it sets."""
    rules: dict[str, object] = {}
    muted = Filler(loading.parameters, Collector(muted=True))
    for key, value in node.entries if isinstance(node, MappingNode) else ():
        path = value.get("path") if isinstance(value, MappingNode) else None
        path = None if path is None else muted.fill(path, SETTING)
        rules[key.text] = axis_rule(path.text if isinstance(path, ScalarNode) else "")
    return rules


def _overrides(section: Section) -> Setting | None:
    if "overrides" not in section.values:
        return None
    return Setting("defaults", (), section.written["overrides"], section.keys["overrides"])


def _vary(section: Section, read: ReadVariants, collector: Collector) -> Iterator[VaryPointer]:
    place = section.place.key("vary")
    if "matrix" in section.written:
        if "vary" in section.written and "variants" not in section.written:
            collector.add("vary-with-matrix", section.keys["vary"], place)
        for axis in read.axes:
            at = section.place.key("matrix").key(axis.axis.name).key("path")
            yield VaryPointer(axis.axis.path, axis.path_node, at)
        return
    if "vary" not in section.written and "variants" in section.written:
        collector.add("vary-required", section.node, place)
    items = section.get("vary")
    for pointer, node, at in items.placed(place) if items is not None else ():
        yield VaryPointer(pointer, node, at)


def _check_settings(loading: Loading, section: Section, read: ReadVariants, overrides: Setting | None) -> None:
    if overrides is not None:
        check_setting(loading, overrides, section.place.key("overrides").named("overrides"))
    seen: set[int] = set()
    for item in read.variants:
        for setting in item.settings:
            if id(setting) not in seen:
                seen.add(id(setting))
                check_setting(loading, setting, _setting_place(section, item, setting))


def _setting_place(section: Section, item: ReadVariant, setting: Setting) -> Place:
    if item.variant.labels:
        return section.place.key("matrix").named(setting.key)
    name = item.variant.name
    written = "overrides" if setting.key == "defaults" else setting.key
    place = section.place.key("variants").key(name).key(written)
    return place.named(f"variants.{name}.{written}", f"variant '{name}'")


def _eval_files(loading: Loading, section: Section) -> tuple[Path, ...]:
    """The files that `evals` names, in the order of its items, each once."""
    items, place = section.get("evals"), section.place.key("evals")
    found: dict[str, Path] = {}
    broken = section.is_broken("evals")
    for pattern, node, where in items.placed(place) if items is not None else ():
        loading.check_absolute(node, where)
        try:
            matches = list(_matching(node.source.base, pattern))
        except InvalidGlob as error:
            broken = True
            loading.collector.add("invalid-glob", node, where, pattern=pattern, reason=error.reason)
            continue
        if not matches:
            loading.collector.add("pattern-matched-nothing", node, where, pattern=pattern)
        for path in matches:
            found.setdefault(os.path.realpath(path), path)
    if items is not None and not found and not broken:
        loading.collector.add("no-evals-matched", section.at("evals"), place)
    return tuple(found.values())


def _matching(base: Path, pattern: str) -> Iterable[Path]:
    """Files, and those that directories stand for."""
    path = paths.absolute(base, pattern)
    candidates = [path]
    if paths.has_magic(pattern) and not paths.exists(path):
        candidates = [paths.absolute(base, match) for match in expand_glob(base, pattern, dotfiles=False)]
    for candidate in candidates:
        if paths.is_dir(candidate):
            inside = (candidate / name for name in EVAL_NAMES)
            yield from [file for file in inside if paths.is_file(file)][:1]
        elif paths.is_file(candidate):
            yield candidate
