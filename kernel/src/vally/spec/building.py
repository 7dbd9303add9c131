"""A spec from its tree: what all variants of it share, and one whole spec with its defaults and environments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vally.errors import PluginError
from vally.model.evalspec import Defaults, EvalSpec
from vally.model.merging import copied
from vally.spec.defaults import read_defaults
from vally.spec.diagnostics import Place
from vally.spec.effective import Effective, make_effective, merge_environments
from vally.spec.environments import Layer, read_layers
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, SequenceNode
from vally.spec.plain_values import plain_value
from vally.spec.scoring import check_weights, read_scoring, shown_scoring, weight_keys
from vally.spec.sections import Section, read_section
from vally.spec.spec_keys import SPEC
from vally.spec.stimuli import ReadStimulus, check_names, read_stimuli
from vally.spec.stimulus_parts import StimulusParts, check_names_across, read_parts, read_root
from vally.spec.templates import expand_rows

_AN_EXPERIMENT = "it looks like an experiment, which is run by 'vally experiment run FILE'"
_EVAL_SUFFIX = re.compile(r"(?:^|/)eval$")


@dataclass(slots=True)
class ReadSpec:
    """A spec before its defaults and root environments are settled."""

    section: Section
    stimuli: list[StimulusParts]


def read_spec(loading: Loading, node: MappingNode) -> ReadSpec | None:
    """Check the structure of a tree, expand its rows, and read everything that no variant changes."""
    section = read_section(node, SPEC, Place(), loading.collector)
    if section is None:
        return None
    root = read_root(loading, section)
    stimuli = [read_parts(loading, root, stimulus) for stimulus in _stimuli(loading, section)]
    check_names_across(loading.collector, stimuli)
    _check_whole(loading, section, stimuli)
    return ReadSpec(section, stimuli)


def build_spec(loading: Loading, node: MappingNode) -> EvalSpec | None:
    """Steps 5 to 10 of loading, for a spec outside an experiment."""
    read = read_spec(loading, node)
    if read is None:
        return None
    defaults = read_defaults(loading, read.section.get("defaults"))
    layers = read_layers(loading, read.section)
    effective = [
        make_effective(loading, merge_environments(loading, layers, parts.layers), parts) for parts in read.stimuli
    ]
    spec = finish_spec(loading, read, (defaults, read.section.get("defaults")), layers, effective)
    return replace(spec, document={**spec.document, "stimuli": copied(spec.document["stimuli"])})


def finish_spec(
    loading: Loading,
    read: ReadSpec,
    defaults: tuple[Defaults, Section | None],
    layers: Mapping[str, Layer],
    effective: Sequence[Effective],
) -> EvalSpec:
    """The spec with these defaults, as the run uses them and as they were read, and these environments and stimuli."""
    section = read.section
    return EvalSpec(
        name=section.get("name") or default_name(loading.source.display),
        path=loading.source.path,
        display_path=loading.source.display,
        description=section.get("description"),
        version=section.get("version"),
        type=section.get("type"),
        defaults=defaults[0],
        stimuli=tuple(item.stimulus for item in effective if item.parts.usable),
        scoring=read_scoring(section.get("scoring")),
        tags=section.get("tags", {}),
        metadata=section.get("metadata", {}),
        document=_document(section, defaults[1], layers, effective),
    )


def _stimuli(loading: Loading, section: Section) -> list[ReadStimulus]:
    place = Place().key("stimuli")
    stimuli = read_stimuli(loading, section.get("stimuli"), place)
    rows = section.get("stimuli_from")
    if rows is not None:
        stimuli += expand_rows(loading, rows, Place().key("stimuli_from"))
    check_names(loading, stimuli)
    written = section.written.get("stimuli")
    if _is_empty(written) and _is_empty(rows):
        hint = _AN_EXPERIMENT if any(section.node.get(key) for key in ("variants", "matrix")) else None
        loading.collector.add("no-stimuli", written or rows or section.node, place, hint=hint)
    return stimuli


def _is_empty(node: Node | None) -> bool:
    """Whether a list is absent or has no items; what was reported as wrong is something."""
    return node is None or (isinstance(node, SequenceNode) and not node.items)


def _check_whole(loading: Loading, section: Section, stimuli: Sequence[StimulusParts]) -> None:
    collector = loading.collector
    nested = section.get("scoring")
    try:
        types = loading.host.records("grader")
    except PluginError:
        types = {}
    check_weights(weight_keys(nested), types, [parts.entries for parts in stimuli], collector)
    golden = any(parts.golden[0] for parts in stimuli)
    threshold = read_scoring(nested).threshold
    if section.get("type") == "regression" and threshold is None and not golden:
        collector.add("regression-without-baseline", section.at("type"), Place().key("type"))


def default_name(display: str) -> str:
    """The label of a spec without `name`: its path without extension and without a final `/eval`."""
    stem = re.sub(r"\.[^./]+$", "", display)
    return _EVAL_SUFFIX.sub("", stem) or stem


def _document(
    section: Section, defaults: Section | None, layers: Mapping[str, Layer], effective: Sequence[Effective]
) -> dict[str, Any]:
    """The effective spec with spec keys."""
    document: dict[str, Any] = {
        key: section.get(key) for key in ("name", "description", "version", "type") if key in section.values
    }
    if defaults is not None:
        document["defaults"] = plain_defaults(defaults)
    document.update({key: copied(layer.shown) for key, layer in layers.items() if layer.shown})
    document["stimuli"] = [item.stimulus.document for item in effective if item.parts.usable]
    if section.get("scoring") is not None:
        document["scoring"] = shown_scoring(section.get("scoring"))
    if section.get("tags"):
        document["tags"] = {
            key: value if isinstance(value, str) else list(value) for key, value in section.get("tags").items()
        }
    if section.get("metadata"):
        document["metadata"] = section.get("metadata")
    return document


def plain_defaults(section: Section) -> dict[str, Any]:
    """The defaults as records show them."""
    plain = {}
    for key, value in section.values.items():
        if isinstance(value, Node):
            plain[key] = plain_value(value, written=True)
        else:
            plain[key] = getattr(value, "text", value)
    return {key: value for key, value in plain.items() if isinstance(value, str | int | float | dict | list)}
