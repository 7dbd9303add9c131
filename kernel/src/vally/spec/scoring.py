"""`scoring` of a spec, and what its weights mean for the graders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vally.model.evalspec import Scoring
from vally.record_facts import CHECKED_CONSTRAINTS
from vally.spec.diagnostics import Collector, Place, related
from vally.spec.nodes import MappingNode, Node
from vally.spec.read_entry import ReadEntry
from vally.spec.sections import Key, Section, Table
from vally.spec.shapes import DurationShape, MapOf, Number

CONSTRAINT_KEYS = frozenset(f"constraints.{key}" for key in CHECKED_CONSTRAINTS)
SCORING = Table(
    "scoring",
    {
        "weights": Key(MapOf(Number()), "weight by grader type or name"),
        "threshold": Key(Number(0, 1), "score that passes"),
        "pass_rate": Key(Number(0, 1), "share of its trials that every stimulus must pass"),
        "timeout": Key(DurationShape(), "limit for all graders of one trial"),
    },
)


def read_scoring(section: Section | None) -> Scoring:
    """The scoring of a section; absent is the default."""
    if section is None:
        return Scoring()
    timeout = section.get("timeout")
    return Scoring(
        weights=section.get("weights", {}),
        threshold=section.get("threshold"),
        pass_rate=section.get("pass_rate"),
        timeout_ms=timeout.ms if timeout else None,
        timeout_text=timeout.text if timeout else None,
    )


@dataclass(frozen=True, slots=True)
class WeightKey:
    """One key of the weights, and where it stands."""

    name: str
    weight: float
    node: Node | None
    place: Place


def weight_keys(section: Section | None) -> list[WeightKey]:
    """The keys of `scoring.weights`."""
    node = section.written.get("weights") if section is not None else None
    if section is None or not isinstance(node, MappingNode):
        return []
    place = section.place.key("weights")
    keys = {entry.key.text: entry.key for entry in node.entries}
    return [
        WeightKey(name, weight, keys.get(name), place.key(name)) for name, weight in section.get("weights", {}).items()
    ]


def check_weights(
    keys: Sequence[WeightKey],
    types: Iterable[str],
    effective: Sequence[Sequence[ReadEntry]],
    collector: Collector,
) -> None:
    """Check weights against the effective graders of every stimulus; `types` are the registered keywords."""
    if not keys:
        return
    known = set(types)
    names = {entry.name for entries in effective for entry in entries if entry.name}
    candidates = sorted({*known, *names})
    used = {key for entries in effective for entry in entries for key in _keys_of(entry)}
    for key in keys:
        at, place = key.node, key.place
        if key.name not in known and key.name not in names and key.name not in CONSTRAINT_KEYS:
            hint = collector.suggestion(key.name, candidates)
            collector.add("invalid-scoring-weight-key", at, place, hint=hint, key=key.name)
            continue
        if key.name in known and key.name in names:
            collector.add("ambiguous-scoring-weight-key", at, place, key=key.name)
        if key.name not in used:
            collector.add("unused-scoring-weight", at, place, key=key.name)
    if not any(key.weight for key in keys):
        collector.add("scoring-weights-zero", keys[0].node, keys[0].place)
    if all(key.name in known or key.name in names or key.name in CONSTRAINT_KEYS for key in keys):
        # A misspelt key lists some grader, though nobody knows which.
        _check_unlisted(keys, effective, collector)
    _check_shared({key.name for key in keys}, effective, collector)


def _keys_of(entry: ReadEntry) -> tuple[str, ...]:
    if entry.constraint is not None:
        return (f"constraints.{entry.constraint}",)
    return (entry.type,) if entry.name is None else (entry.name, entry.type)


def _check_unlisted(keys: Sequence[WeightKey], effective: Sequence[Sequence[ReadEntry]], collector: Collector) -> None:
    if not math.isclose(sum(key.weight for key in keys), 1, abs_tol=0.01):
        return
    listed = {key.name for key in keys}
    reported = set()
    for entry in (entry for entries in effective for entry in entries):
        missing = entry.constraint is None and entry.weight is None and listed.isdisjoint(_keys_of(entry))
        if missing and entry.type not in reported:
            reported.add(entry.type)
            collector.add("unlisted-grader-weight", entry.at("type"), entry.place.key("type"), type=entry.type)


def _check_shared(listed: set[str], effective: Sequence[Sequence[ReadEntry]], collector: Collector) -> None:
    for entries in effective:
        first: dict[str, ReadEntry] = {}
        for entry in entries:
            if entry.name is not None or entry.constraint is not None or entry.type not in listed:
                continue
            other = first.setdefault(entry.type, entry)
            if other is not entry:
                collector.add(
                    "duplicate-grader-type-in-stimulus",
                    entry.node,
                    entry.place,
                    related=[related(other.node, "the other one")],
                    type=entry.type,
                )


def shown_scoring(section: Section | None) -> dict[str, Any]:
    """The scoring as records show it."""
    if section is None:
        return {}
    return {key: value.text if key == "timeout" else value for key, value in section.values.items()}
