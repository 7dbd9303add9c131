"""The keys at the root of an eval spec."""

from __future__ import annotations

from vally.spec.artifacts import ARTIFACTS
from vally.spec.defaults import DEFAULTS
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Entry
from vally.spec.project import PROJECT
from vally.spec.scoring import SCORING
from vally.spec.sections import Key, Table
from vally.spec.shapes import Choice, OpaqueMapping, RawShape, SectionOf, Text, TextOfScalar
from vally.spec.tags import TagsShape

_ENVIRONMENT = Key(RawShape("environment"), "mapping, or name of an environment of the project file")


def _unknown(table: Table, entry: Entry, place: Place, collector: Collector) -> None:
    """An error when it may be a misspelt key, else a key of another tool."""
    key, name = entry.key, entry.key.text
    misplaced = table.misplaced.get(name)
    hint = f"move it under {misplaced}" if misplaced else collector.suggestion(name, table.keys)
    if hint is None:
        theirs = "it is a key of the project file '.vally.yaml'" if name in PROJECT.keys else None
        collector.add("foreign-key", key, place.key(name), hint=theirs, key=name)
    else:
        collector.add("unknown-key", key, place.key(name), hint=hint, key=name, where="the eval spec")


SPEC = Table(
    "eval spec",
    {
        "name": Key(Text(), "label of the eval"),
        "description": Key(Text(blank=True), "free text"),
        "version": Key(TextOfScalar(silent=True), "the author's own version label"),
        "type": Key(Choice(("capability", "regression")), "intent"),
        "defaults": Key(SectionOf(DEFAULTS), "trials, limits, models, executor"),
        "environment": _ENVIRONMENT,
        "agent_environment": _ENVIRONMENT,
        "grading_environment": Key(RawShape("grading-environment"), _ENVIRONMENT.doc),
        "graders": Key(RawShape("graders"), "checks in front of each stimulus's own"),
        "artifacts": Key(SectionOf(ARTIFACTS), "files to keep, for every stimulus"),
        "stimuli": Key(RawShape("stimuli"), "what the agent is asked"),
        "stimuli_from": Key(RawShape("stimuli-from"), "stimuli made from the rows of a data file"),
        "scoring": Key(SectionOf(SCORING), "how results become a verdict"),
        "tags": Key(TagsShape(), "tags of every stimulus"),
        "metadata": Key(OpaqueMapping(), "handed to reporters"),
    },
    unknown=_unknown,
    renamed={"config": "defaults"},
    open=True,
    # Later entries win: a key of both is taken for one of `defaults`.
    misplaced={key: nested.title for nested in (SCORING, DEFAULTS) for key in nested.keys},
)
