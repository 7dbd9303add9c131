"""`constraints` of a stimulus: limits, and the graders that check them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vally.errors import ConfigInvalid, PluginError
from vally.model.evalspec import Constraints
from vally.record_facts import CHECKED_CONSTRAINTS
from vally.records import GraderSpec
from vally.spec.diagnostics import Collector, Place
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, SequenceNode
from vally.spec.read_entry import ReadEntry
from vally.spec.scalars import describe, is_null
from vally.spec.sections import INVALID, Items, Key, Section, Shape, Table, read_section
from vally.spec.shapes import DurationShape, Integer, ListOf, Text

EXPECTED_SKILLS = "expect_skills"


@dataclass(frozen=True, slots=True)
class Bounded:
    """A shape whose findings are `invalid-constraint-value`; warnings pass."""

    shape: Shape
    expected: str

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        findings = Collector(lint=collector.lint)
        value = self.shape.read(node, place, findings)
        if findings.is_empty:
            return value
        found = findings.ordered()
        wrong = [item for item in found if item.level == "error"]
        if wrong:
            key = place.pointer.rsplit("/", 1)[-1]
            for at, where in _wrong_items(node, place, self.shape):
                collector.add(
                    "invalid-constraint-value", at, where, key=key, value=describe(at), expected=self.expected
                )
            return INVALID
        collector.extend(found)
        return value


def _wrong_items(node: Node, place: Place, shape: Shape) -> list[tuple[Node, Place]]:
    """The items of a list that are wrong, or the value itself."""
    if not isinstance(node, SequenceNode) or not isinstance(shape, ListOf):
        return [(node, place)]
    items = [(item, place.item(index)) for index, item in enumerate(node.items)]
    return [(at, where) for at, where in items if shape.item.read(at, where, Collector(muted=True)) is INVALID]


_COUNT = Bounded(Integer(0), "an integer >= 0")
_DURATION = Bounded(DurationShape(), "a duration above 0 such as 30s or 2m40s")
_TEXTS = Bounded(ListOf(Text(), single="warning"), "a list of texts that are not blank")
CONSTRAINTS = Table(
    "constraints",
    {
        "max_turns": Key(_COUNT, "most agent turns"),
        "max_tokens": Key(_COUNT, "most tokens"),
        "max_duration": Key(_DURATION, "longest wall time"),
        "max_agent_duration": Key(_DURATION, "soft limit handed to the executor"),
        "expect_tools": Key(_TEXTS, "tools that must be called"),
        "reject_tools": Key(_TEXTS, "tools that must not be called"),
        EXPECTED_SKILLS: Key(_TEXTS, "skills that must be activated"),
        "reject_skills": Key(_TEXTS, "skills that must not be activated; '*' is any"),
    },
)


def read_constraints(loading: Loading, node: Node | None, place: Place) -> Section | None:
    """The section of the constraints, or None."""
    return None if node is None else read_section(node, CONSTRAINTS, place, loading.collector)


def checks_something(node: Node | None) -> bool:
    """Whether constraints as written hold a check, wrong as it may be; an empty list checks nothing."""
    values = [] if not isinstance(node, MappingNode) else [node.get(key) for key in CHECKED_CONSTRAINTS]
    return any(not is_null(value) and not (isinstance(value, SequenceNode) and not value.items) for value in values)


def limits(section: Section | None) -> Constraints:
    """The limits that an executor may know."""
    if section is None:
        return Constraints()
    duration, agent = section.get("max_duration"), section.get("max_agent_duration")
    return Constraints(
        max_turns=section.get("max_turns"),
        max_tokens=section.get("max_tokens"),
        max_duration_ms=duration.ms if duration else None,
        max_agent_duration_ms=agent.ms if agent else None,
    )


def constraint_entries(loading: Loading, section: Section | None) -> list[ReadEntry]:
    """One required grader entry per constraint that checks something."""
    if section is None:
        return []
    entries = []
    for key in CHECKED_CONSTRAINTS:
        value = section.get(key)
        if value is None or (type(value) is Items and not value):
            continue
        entry = _entry(loading, section, key, value)
        if entry is not None:
            entries.append(entry)
    return entries


def _provider(loading: Loading, key: str) -> GraderSpec | None:
    """The grader that checks a constraint, looked for once per host."""
    return loading.host.memo(("constraint", key), lambda: loading.host.constraint_provider(key))


def _entry(loading: Loading, section: Section, key: str, value: Any) -> ReadEntry | None:
    node, place = section.at(key), section.place.key(key)
    collector = loading.collector
    try:
        record = _provider(loading, key)
    except PluginError as error:
        hint, name = "\n".join(error.hints) or None, f"constraints.{key}"
        collector.add("plugin-load-failed", section.keys[key], place, hint=hint, name=name, reason=error.message)
        return None
    if record is None:
        collector.add("unknown-grader-type", section.keys[key], place, type=f"constraints.{key}", hint=_NOBODY)
        return None
    entry = ReadEntry(node, place, record.name, record=record, required=True, constraint=key)
    entry.config = {record.constraints[key]: _plain(value)}
    try:
        # The same few limits stand in many stimuli; what is made of them is frozen.
        known = ("constraint", key, repr(entry.config))
        if known not in loading.memo:
            loading.memo[known] = loading.host.parse_config(record, entry.config, spec_dir=loading.source.base)
        entry.parsed = loading.memo[known]
    except ConfigInvalid as error:
        entry.valid = False
        for problem in error.problems:
            collector.add(
                "invalid-constraint-value", node, place, key=key, value=describe(node), expected=_expected(problem)
            )
    except PluginError as error:
        entry.valid = False
        collector.add("plugin-load-failed", section.keys[key], place, name=record.name, reason=error.message)
    return entry


_NOBODY = "no installed grader checks this constraint"


def _expected(problem: str) -> str:
    return f"a value that its grader takes ({problem})"


def _plain(value: Any) -> Any:
    if type(value) is Items:
        return list(value)
    return getattr(value, "text", value)


def check_skill_names(loading: Loading, section: Section | None, offered: Sequence[str] | None) -> None:
    """Warn about expected skills that a stimulus with skills does not declare.

    One to which none is offered is meant to have none, as the control of an experiment is.
    """
    expected = section.get(EXPECTED_SKILLS) if section is not None else None
    if section is None or expected is None or not offered:
        return
    for name, node, place in expected.placed(section.place.key(EXPECTED_SKILLS)):
        if name not in offered:
            hint = loading.collector.suggestion(name, offered)
            loading.collector.add("unknown-skill-in-constraint", node, place, hint=hint, name=name)


def needs_skills(loading: Loading, entries: list[ReadEntry]) -> list[ReadEntry]:
    """Entries that can pass only when a skill is activated."""
    try:
        record = _provider(loading, EXPECTED_SKILLS)
    except PluginError:
        return []
    if record is None:
        return []
    key = record.constraints[EXPECTED_SKILLS]
    return [entry for entry in entries if entry.type == record.name and entry.valid and entry.config.get(key)]


def shown_constraints(section: Section | None) -> dict[str, Any]:
    """The constraints as records show them."""
    if section is None:
        return {}
    return {key: _plain(value) for key, value in section.values.items()}
