"""Stimuli: their keys, prompts, rubric, and names."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vally.spec.artifacts import ARTIFACTS
from vally.spec.attachments import ATTACHMENTS
from vally.spec.diagnostics import Collector, Place
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.placeholders import SOURCE_TEXT, source_text
from vally.spec.scalars import is_null
from vally.spec.sections import INVALID, Key, Section, Table, read_section, wrong_type, wrong_value
from vally.spec.shapes import ListOf, RawShape, SectionOf, Text, read_text
from vally.spec.tags import TagsShape
from vally.text.names import name_key

MAX_NAME = 200
# No real name can start with a control character.
_MADE_UP = "\0"
_IGNORED = {
    "config": "use defaults",
    "runs": "use defaults.runs",
    "timeout": "use defaults.timeout",
    "expect_activation": "use tags",
    "category": "use tags",
    "invariants": "use tags",
    "customized_disallow": "use tags",
    "customized_required": "use tags",
}


class NameShape:
    """A stimulus name, trimmed."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        text = read_text(node, place, collector)
        if text is INVALID:
            return INVALID
        name = text.strip()
        if not name:
            return wrong_value(node, place, collector, "a text that is not blank")
        if len(name) > MAX_NAME:
            return wrong_value(node, place, collector, f"at most {MAX_NAME} characters")
        if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name):
            return wrong_value(node, place, collector, "a text without control characters and line breaks")
        return name


class TurnsShape:
    """A non-empty list of texts; an item may be a mapping with the text as `prompt`."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if not isinstance(node, SequenceNode):
            return wrong_type(node, place, collector, "a list of strings")
        if not node.items:
            return wrong_value(node, place, collector, "at least one turn", value="an empty list")
        items = collector.until_full(enumerate(node.items))
        turns = [self._turn(item, place.item(index), collector) for index, item in items]
        return INVALID if any(turn is INVALID for turn in turns) else tuple(turns)

    def _turn(self, node: Node, place: Place, collector: Collector) -> Any:
        if isinstance(node, MappingNode) and [key.text for key, _ in node.entries] == ["prompt"]:
            collector.add("deprecated-turn-mapping", node, place)
            return Text().read(node.entries[0].value, place.key("prompt"), collector)
        return Text().read(node, place, collector)


class RubricShape:
    """A list of criteria; an item that YAML took for a collection is its source text."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        return ListOf(_Criterion(), single="warning").read(node, place, collector)


class _Criterion:
    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        scalar = node if isinstance(node, ScalarNode) else source_text(node)
        if scalar.tag == SOURCE_TEXT:
            if not scalar.text.strip():
                return wrong_type(node, place, collector, "a string")
            collector.add("rubric-item-not-string", node, place, value=scalar.text)
            return scalar.text
        return Text().read(node, place, collector)


def _unknown(table: Table, entry: Entry, place: Place, collector: Collector) -> None:
    key, name = entry.key, entry.key.text
    if name in table.ignored:
        collector.add("ignored-stimulus-field", key, place.key(name), hint=table.ignored[name], key=name)
        return
    hint = collector.suggestion(name, table.keys)
    collector.add("unknown-stimulus-field", key, place.key(name), hint=hint, key=name)


_ENVIRONMENT = Key(RawShape("environment"), "mapping, or name of an environment of the project file")
STIMULUS_KEYS: Mapping[str, Key] = {
    "name": Key(NameShape(), "identity of the stimulus", required=True),
    "prompt": Key(Text(), "one user message"),
    "turns": Key(TurnsShape(), "several user messages in one session"),
    "environment": _ENVIRONMENT,
    "agent_environment": _ENVIRONMENT,
    "grading_environment": Key(RawShape("grading-environment"), _ENVIRONMENT.doc),
    "tags": Key(TagsShape(), "tags to select by"),
    "graders": Key(RawShape("graders"), "checks"),
    "rubric": Key(RubricShape(), "criteria for judges"),
    "constraints": Key(RawShape("constraints"), "limits that are checked"),
    "artifacts": Key(SectionOf(ARTIFACTS), "files to keep"),
    "attachments": Key(ATTACHMENTS, "files sent with a message"),
    "simulation": Key(RawShape("simulation"), "simulated user and tool answers"),
    "golden_patch": Key(RawShape("golden-patch"), "a diff that solves the task"),
    "golden_command": Key(RawShape("golden-command"), "a command that solves the task"),
    "golden_trajectory": Key(RawShape("golden-trajectory"), "a recorded solution"),
}
STIMULUS = Table("stimulus", STIMULUS_KEYS, unknown=_unknown, ignored=_IGNORED)
UNNAMED = Table(
    "stimulus",
    {**STIMULUS_KEYS, "name": Key(NameShape(), "identity; made from file and row when absent")},
    unknown=_unknown,
    ignored=_IGNORED,
)
"""A template of stimuli, whose names may be made up."""


@dataclass(slots=True)
class ReadStimulus:
    """One stimulus as written; `turns` is empty when it has no valid prompt."""

    section: Section
    name: str
    turns: tuple[str, ...] = ()
    source: Mapping[str, object] | None = None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.section.place

    @property
    def is_named(self) -> bool:
        """Whether its name is its own, and not one made up so that the rest could be checked."""
        return not self.name.startswith(_MADE_UP)


def read_stimuli(loading: Loading, node: Node | None, place: Place) -> list[ReadStimulus]:
    """The stimuli of a list."""
    if node is None:
        return []
    if not isinstance(node, SequenceNode):
        wrong_type(node, place, loading.collector, "a list")
        return []
    items = loading.collector.until_full(enumerate(node.items))
    read = [read_stimulus(loading, item, place.item(index)) for index, item in items]
    return [stimulus for stimulus in read if stimulus is not None]


def read_stimulus(
    loading: Loading, node: Node, place: Place, *, default_name: str | None = None
) -> ReadStimulus | None:
    """One stimulus; `default_name` is used when it has none of its own."""
    collector = loading.collector
    written = node.get("name") if isinstance(node, MappingNode) else None
    named = isinstance(written, ScalarNode) and not is_null(written)
    shown = written.text.strip() if isinstance(written, ScalarNode) and named else default_name
    context = f"stimulus '{shown}'" if shown else f"stimulus {int(place.pointer.rsplit('/', 1)[-1]) + 1}"
    place = place.named("" if named or default_name else place.label, context)
    if not isinstance(node, MappingNode):
        wrong_type(node, place.named("stimulus"), collector, "a mapping")
        return None
    section = read_section(node, UNNAMED if default_name else STIMULUS, place, collector)
    assert section is not None
    # An unnamed stimulus is still checked, under a name that cannot be taken.
    section.place = place.named("")
    name = section.get("name") or default_name or f"{_MADE_UP}{node.line}:{node.column}:{place.pointer}"
    return ReadStimulus(section, name, _turns(section, collector))


def _turns(section: Section, collector: Collector) -> tuple[str, ...]:
    written = [key for key in ("prompt", "turns") if key in section.written]
    if len(written) == 2:
        collector.add("prompt-and-turns", section.keys["turns"], section.place.key("turns"))
        return ()
    if not written:
        collector.add("missing-prompt", section.node, section.place)
        return ()
    if written == ["prompt"]:
        return (section.get("prompt"),) if "prompt" in section.values else ()
    turns: tuple[str, ...] = section.get("turns", ())
    return turns


def check_names(loading: Loading, stimuli: list[ReadStimulus]) -> None:
    """Report names that occur twice, and names that differ only in case."""
    from vally.spec.diagnostics import related

    exact: dict[str, ReadStimulus] = {}
    folded: dict[str, ReadStimulus] = {}
    for stimulus in stimuli:
        if not stimulus.is_named:
            continue
        name = name_key(stimulus.name)
        at, place = stimulus.section.at("name"), stimulus.place.key("name")
        if name in exact:
            first = exact[name].section.at("name")
            notes = [related(first, "first here")]
            loading.collector.add("duplicate-stimulus-name", at, place, related=notes, name=name, line=first.line)
        elif name.casefold() in folded:
            other = folded[name.casefold()].name
            loading.collector.add("similar-stimulus-name", at, place, first=other, second=name)
        exact.setdefault(name, stimulus)
        folded.setdefault(name.casefold(), stimulus)
