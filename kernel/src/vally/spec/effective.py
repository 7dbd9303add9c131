"""Effective stimuli: root merged into each, and the checks that need both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from vally.model.evalspec import Artifacts, Attachment, Position, Stimulus
from vally.spec.attachments import read_attachments
from vally.spec.constraints import (
    EXPECTED_SKILLS,
    check_skill_names,
    constraint_entries,
    limits,
    needs_skills,
    read_constraints,
    shown_constraints,
)
from vally.spec.diagnostics import Collector, Place, related
from vally.spec.environments import (
    ENVIRONMENT,
    GRADING_ENVIRONMENT,
    NO_LAYER,
    Layer,
    Merged,
    check_collisions,
    known_skills,
    merge_layers,
    read_layer,
)
from vally.spec.golden import read_golden
from vally.spec.grader_entries import check_turns, read_entries
from vally.spec.loading import Loading
from vally.spec.nodes import Node, SequenceNode
from vally.spec.read_entry import ReadEntry
from vally.spec.sections import Section
from vally.spec.shapes import read_plain
from vally.spec.simulation import read_simulation
from vally.spec.stimuli import ReadStimulus, merge_artifacts

ENVIRONMENT_KEYS = ("environment", "agent_environment", "grading_environment")


@dataclass(slots=True)
class Root:
    """What the root of a spec gives to every stimulus."""

    layers: Mapping[str, Layer] = field(default_factory=dict)
    graders: Sequence[ReadEntry] = ()
    tags: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    artifacts: Section | None = None
    grader_node: Node | None = None


@dataclass(slots=True)
class Effective:
    """One effective stimulus with the entries it was made from; not `usable` without a name or a prompt."""

    stimulus: Stimulus
    entries: list[ReadEntry]
    usable: bool


def read_layers(loading: Loading, section: Section) -> dict[str, Layer]:
    """The three environment keys of a root or a stimulus."""
    layers = {}
    for key in ENVIRONMENT_KEYS:
        table = GRADING_ENVIRONMENT if key == "grading_environment" else ENVIRONMENT
        node = section.get(key)
        layers[key] = read_layer(loading, node, section.place.key(key).named(key), table=table)
    return layers


def read_root(loading: Loading, section: Section) -> Root:
    """The parts of a root section that are merged into stimuli."""
    graders = section.get("graders")
    return Root(
        read_layers(loading, section),
        read_entries(loading, graders, section.place.key("graders")),
        section.get("tags", {}),
        section.get("artifacts"),
        graders,
    )


def _plain_graders(node: Node | None) -> list[Any]:
    plain = [] if node is None else read_plain(node, Place(), Collector(muted=True))
    return plain if isinstance(plain, list) else []


@dataclass(slots=True)
class _Parts:
    """What the keys of one stimulus and of the root come to; pairs hold what the run uses and what records show."""

    environments: Mapping[str, Merged]
    entries: list[ReadEntry]
    graders: list[Any]
    constraints: Section | None
    golden: tuple[dict[str, Any], dict[str, Any]]
    attachments: tuple[list[Attachment], list[dict[str, Any]]]
    simulation: dict[str, Any] | None
    artifacts: Mapping[str, tuple[str, ...]]
    tags: Mapping[str, str | tuple[str, ...]]


def make_effective(loading: Loading, root: Root, read: ReadStimulus) -> Effective:
    """Merge the root into one stimulus and check the result."""
    parts = _read_parts(loading, root, read)
    merged = parts.environments["effective"]
    check_collisions(loading, merged)
    offered = known_skills(loading, merged)
    check_skill_names(loading, parts.constraints, offered.names)
    _check_entries(loading, root, read, parts.entries)
    if offered.nothing:
        _report_nothing_under_test(loading, parts.entries, parts.constraints)
    return Effective(_stimulus(read, parts), parts.entries, usable=read.is_named and bool(read.turns))


def _read_parts(loading: Loading, root: Root, read: ReadStimulus) -> _Parts:
    section, place = read.section, read.section.place
    constraints = read_constraints(loading, section.get("constraints"), place.key("constraints"))
    own = read_entries(loading, section.get("graders"), place.key("graders"))
    attachments, simulation = section.get("attachments"), section.get("simulation")
    return _Parts(
        environments=_environments(root.layers, read_layers(loading, section)),
        entries=[*root.graders, *own, *constraint_entries(loading, constraints)],
        graders=[*_plain_graders(root.grader_node), *_plain_graders(section.get("graders"))],
        constraints=constraints,
        golden=read_golden(loading, section),
        attachments=([], [])
        if attachments is None
        else read_attachments(loading, attachments, place.key("attachments"), len(read.turns)),
        simulation=None
        if simulation is None
        else read_simulation(simulation, place.key("simulation").named("simulation"), loading.collector),
        artifacts=merge_artifacts(loading.collector, root.artifacts, section.get("artifacts")),
        tags={**root.tags, **section.get("tags", {})},
    )


def _stimulus(read: ReadStimulus, parts: _Parts) -> Stimulus:
    section = read.section
    environments = {key: merged.environment for key, merged in parts.environments.items()}
    return Stimulus(
        name=read.name,
        prompt="\n\n".join(read.turns),
        turns=read.turns,
        has_turns="turns" in section.values,
        environment=environments["environment"],
        agent_environment=environments["agent_environment"],
        grading_environment=environments["grading_environment"],
        effective_environment=environments["effective"],
        tags=parts.tags,
        graders=tuple(entry.finished() for entry in parts.entries),
        rubric=tuple(section.get("rubric", ())),
        constraints=limits(parts.constraints),
        artifacts=Artifacts(**parts.artifacts),
        attachments=tuple(parts.attachments[0]),
        simulation=parts.simulation,
        **parts.golden[0],
        source=read.source,
        position=_position(section.node),
        document=_document(read, parts),
    )


def _document(read: ReadStimulus, parts: _Parts) -> dict[str, Any]:
    """The stimulus with spec keys; nothing in it is shared with the stimulus or with another document."""
    section = read.section
    document = {
        "name": read.name,
        "prompt": "\n\n".join(read.turns),
        "turns": list(section.get("turns", ())),
        **{key: parts.environments[key].shown for key in ENVIRONMENT_KEYS},
        "tags": {key: value if isinstance(value, str) else list(value) for key, value in parts.tags.items()},
        "graders": parts.graders,
        "rubric": list(section.get("rubric", ())),
        "constraints": shown_constraints(parts.constraints),
        "artifacts": {key: list(globs) for key, globs in parts.artifacts.items()},
        "attachments": parts.attachments[1],
        "simulation": parts.simulation,
        **parts.golden[1],
        "source": read.source,
    }
    return deepcopy({key: value for key, value in document.items() if value not in (None, {}, [])})


def _environments(root: Mapping[str, Layer], own: Mapping[str, Layer]) -> dict[str, Merged]:
    merged = {key: merge_layers(root.get(key, NO_LAYER), own[key]) for key in ENVIRONMENT_KEYS}
    merged["effective"] = merge_layers(
        root.get("environment", NO_LAYER),
        root.get("agent_environment", NO_LAYER),
        own["environment"],
        own["agent_environment"],
    )
    return merged


def _position(node: Node) -> Position:
    return Position(file=node.source.display, line=node.line, column=node.column)


def _check_entries(loading: Loading, root: Root, read: ReadStimulus, entries: list[ReadEntry]) -> None:
    collector, section = loading.collector, read.section
    if not entries and _lists_none(root.grader_node) and _lists_none(section.written.get("graders")):
        collector.add("no-graders", section.node, section.place)
    _check_grader_names(collector, entries)
    for entry in entries:
        if read.turns:
            check_turns(loading, entry, len(read.turns), _in_stimulus(entry, read, "turn"))
        if not entry.is_judge or not entry.valid:
            continue
        has_rubric = bool(section.get("rubric")) or section.is_broken("rubric")
        if not has_rubric and not getattr(entry.parsed, "criteria", None):
            collector.add("prompt-without-rubric", entry.node, _in_stimulus(entry, read))
        if "golden_patch" in entry.evidence and "golden_patch" not in section.written:
            collector.add("golden-patch-evidence-missing", entry.node, _in_stimulus(entry, read))
    known = all(entry.record is not None for entry in entries)
    if section.get("rubric") and known and not any(entry.is_judge for entry in entries):
        collector.add("rubric-without-llm-judge", section.at("rubric"), section.place.key("rubric"))


def _lists_none(node: Node | None) -> bool:
    """Whether a list of graders is absent or empty; entries that were reported count."""
    return node is None or (isinstance(node, SequenceNode) and not node.items)


def _in_stimulus(entry: ReadEntry, read: ReadStimulus, key: str | None = None) -> Place:
    """The place of an entry; one of the root is named together with the stimulus it does not fit."""
    place = entry.place if key is None else entry.place.key(key)
    own = read.section.place.context
    if own and own not in (place.context or ""):
        return place.named(place.label, f"{own}, {place.context}")
    return place


def _check_grader_names(collector: Collector, entries: list[ReadEntry]) -> None:
    first: dict[str, ReadEntry] = {}
    for entry in entries:
        if entry.name is None:
            continue
        other = first.setdefault(entry.name, entry)
        if other is not entry:
            at = other.at("name")
            collector.add(
                "duplicate-grader-name",
                entry.at("name"),
                entry.place.key("name"),
                related=[related(at, "first here")],
                name=entry.name,
                line=at.line,
            )


def check_names_across(collector: Collector, effective: Sequence[Effective]) -> None:
    """Warn about a grader name that two different stimuli use."""
    first: dict[str, ReadEntry] = {}
    for item in effective:
        own = {entry.name: entry for entry in item.entries if entry.name is not None}
        for name, entry in own.items():
            other = first.setdefault(name, entry)
            if other is not entry and other.node is not entry.node:
                at = other.at("name")
                collector.add(
                    "duplicate-grader-name",
                    entry.at("name"),
                    entry.place.key("name"),
                    level="warning",
                    related=[related(at, "first here")],
                    name=name,
                    line=at.line,
                )


def _report_nothing_under_test(loading: Loading, entries: list[ReadEntry], constraints: Section | None) -> None:
    """Once per stimulus, at the first check that needs a skill."""
    expecting = needs_skills(loading, entries)
    if expecting:
        loading.collector.add("nothing-under-test", expecting[0].node, expecting[0].place)
    elif constraints is not None and constraints.get(EXPECTED_SKILLS):
        place = constraints.place.key(EXPECTED_SKILLS)
        loading.collector.add("nothing-under-test", constraints.at(EXPECTED_SKILLS), place)
