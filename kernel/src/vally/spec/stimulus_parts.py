"""What a stimulus has apart from its environment, the root's part merged in, and the checks of its graders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vally.model.evalspec import Attachment, GraderEntry
from vally.model.merging import copied
from vally.spec.artifacts import merge_artifacts
from vally.spec.attachments import read_attachments
from vally.spec.constraints import checks_something, constraint_entries, read_constraints, shown_constraints
from vally.spec.diagnostics import Collector, Place, related
from vally.spec.environments import Layer, read_layers
from vally.spec.golden import read_golden
from vally.spec.grader_entries import check_turns, read_entries
from vally.spec.loading import Loading
from vally.spec.nodes import Node, SequenceNode
from vally.spec.plain_values import plain_value
from vally.spec.read_entry import ReadEntry
from vally.spec.sections import Section
from vally.spec.simulation import read_simulation
from vally.spec.stimuli import ReadStimulus


@dataclass(slots=True)
class Root:
    """What the root of a spec gives to every stimulus, environments aside."""

    graders: Sequence[ReadEntry] = ()
    tags: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    artifacts: Section | None = None
    grader_node: Node | None = None


# Values of a document that were made for it and that nothing else holds.
_OWN = frozenset({"name", "prompt", "turns", "tags", "graders", "rubric", "artifacts"})


@dataclass
class StimulusParts:
    """One stimulus as far as no variant changes it; pairs hold what the run uses and what records show."""

    read: ReadStimulus
    layers: Mapping[str, Layer]
    """The environments of its own."""
    entries: list[ReadEntry]
    finished: tuple[GraderEntry, ...]
    graders: list[Any]
    constraints: Section | None
    golden: tuple[dict[str, Any], dict[str, Any]]
    attachments: tuple[list[Attachment], list[dict[str, Any]]]
    simulation: dict[str, Any] | None
    artifacts: Mapping[str, tuple[str, ...]]
    tags: Mapping[str, str | tuple[str, ...]]

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it with spec keys, made once."""
        section = self.read.section
        document = {
            "name": self.read.name,
            "prompt": "\n\n".join(self.read.turns),
            "turns": list(section.get("turns", ())),
            "tags": {key: value if isinstance(value, str) else list(value) for key, value in self.tags.items()},
            "graders": self.graders,
            "rubric": list(section.get("rubric", ())),
            "constraints": shown_constraints(self.constraints),
            "artifacts": {key: list(globs) for key, globs in self.artifacts.items()},
            "attachments": self.attachments[1],
            "simulation": self.simulation,
            **self.golden[1],
            "source": self.read.source,
        }
        return {
            key: value if key in _OWN else copied(value)
            for key, value in document.items()
            if value not in (None, {}, [])
        }

    @property
    def usable(self) -> bool:
        """Whether it has a name and a prompt."""
        return self.read.is_named and bool(self.read.turns)


def read_root(loading: Loading, section: Section) -> Root:
    """The parts of a root section that are merged into stimuli."""
    graders = section.get("graders")
    entries = read_entries(loading, graders, section.place.key("graders"))
    return Root(entries, section.get("tags", {}), section.get("artifacts"), graders)


def read_parts(loading: Loading, root: Root, read: ReadStimulus) -> StimulusParts:
    """Read the keys of one stimulus and check its graders."""
    section, place = read.section, read.section.place
    constraints = read_constraints(loading, section.get("constraints"), place.key("constraints"))
    own = read_entries(loading, section.get("graders"), place.key("graders"))
    own += constraint_entries(loading, constraints)
    entries = [*root.graders, *own]
    attachments, simulation = section.get("attachments"), section.get("simulation")
    _check_entries(loading, root, read, entries)
    return StimulusParts(
        read=read,
        layers=read_layers(loading, section),
        entries=entries,
        finished=(*(entry.finished(shared=True) for entry in root.graders), *(entry.finished() for entry in own)),
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


def _plain_graders(node: Node | None) -> list[Any]:
    plain = [] if node is None else plain_value(node)
    return plain if isinstance(plain, list) else []


def _check_entries(loading: Loading, root: Root, read: ReadStimulus, entries: list[ReadEntry]) -> None:
    collector, section = loading.collector, read.section
    lists = (root.grader_node, section.written.get("graders"))
    if not entries and not checks_something(section.written.get("constraints")) and all(map(_lists_none, lists)):
        collector.add("no-graders", section.node, section.place)
    _check_grader_names(collector, entries)
    for entry in entries:
        if read.turns and entry.turn is not None:
            check_turns(loading, entry, len(read.turns), _in_stimulus(entry, read, "turn"))
        if not entry.is_judge or not entry.valid:
            continue
        if _lists_none(section.written.get("rubric")) and not getattr(entry.parsed, "criteria", None):
            collector.add("prompt-without-rubric", entry.node, _in_stimulus(entry, read))
        if "golden_patch" in entry.evidence and "golden_patch" not in section.written:
            collector.add("golden-patch-evidence-missing", entry.node, _in_stimulus(entry, read))
    known = all(entry.record is not None for entry in entries)
    if section.get("rubric") and known and not any(entry.is_judge for entry in entries):
        collector.add("rubric-without-llm-judge", section.at("rubric"), section.place.key("rubric"))


def _lists_none(node: Node | None) -> bool:
    """Whether a list is absent or empty; entries that were reported count."""
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


def check_names_across(collector: Collector, stimuli: Sequence[StimulusParts]) -> None:
    """Warn about a grader name that two different stimuli use; an entry shared by alias or template is one use."""
    first: dict[str, ReadEntry] = {}
    for item in stimuli:
        own = {entry.name: entry for entry in item.entries if entry.name is not None}
        for name, entry in own.items():
            other = first.setdefault(name, entry)
            if not other.node.is_at(entry.node):
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
