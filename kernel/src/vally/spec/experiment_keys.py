"""The keys of an experiment file, and how its placeholders are filled."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vally.spec.defaults import DEFAULTS
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Entry
from vally.spec.placeholders import ANY, DEFAULTS_RULE, ENVIRONMENT_RULE, IGNORED, LITERAL, SETTING, Rule, rule_below
from vally.spec.pointers import PointerShape, tokens_of
from vally.spec.scoring import SCORING
from vally.spec.sections import Key, Table
from vally.spec.shapes import Integer, ListOf, MapOf, OpaqueMapping, RawShape, SectionOf, Text, TextOfScalar

_REGISTER = "register plugins in .vally.yaml"
REMOVED: Mapping[str, str] = MappingProxyType({"filter": "use --eval-filter"})
"""Keys of earlier releases that are errors now, and what to do instead."""


def _unknown(table: Table, entry: Entry, place: Place, collector: Collector) -> None:
    """Older keys, misspelt ones, and those of other tools."""
    key, name = entry.key, entry.key.text
    at = place.key(name)
    if name in REMOVED:
        collector.add("removed-key", key, at, hint=REMOVED[name], key=name)
    elif name in table.ignored:
        collector.add("ignored-key", key, at, hint=table.ignored[name], key=name)
    elif hint := _meant(table, name, collector):
        collector.add("unknown-key", key, at, hint=hint, key=name, where=f"the {table.title}")
    else:
        collector.add("foreign-key", key, at, key=name)


def _meant(table: Table, name: str, collector: Collector) -> str | None:
    if name in table.misplaced:
        return f"move it under {table.misplaced[name]}"
    return collector.suggestion(name, table.keys)


_ENVIRONMENT = Key(RawShape("variant-environment"), "changes to it, or the name of an environment that replaces it")
VARIANT = Table(
    "variant",
    {
        "description": Key(Text(blank=True), "free text"),
        "overrides": Key(SectionOf(DEFAULTS), "keys of defaults to replace"),
        "environment": _ENVIRONMENT,
        "agent_environment": _ENVIRONMENT,
    },
)
AXIS = Table(
    "axis",
    {
        "path": Key(PointerShape(), "JSON Pointer to what the axis sets", required=True),
        "values": Key(RawShape("axis-values"), "scalars, or one-key mappings from a label to a value", required=True),
    },
)
EXECUTION = Table("execution", {"workers": Key(Integer(1), "trials at a time", default=5)})
EXPERIMENT = Table(
    "experiment file",
    {
        "name": Key(Text(), "name of the experiment", required=True),
        "description": Key(Text(blank=True), "free text"),
        "version": Key(TextOfScalar(silent=True), "the author's own version label"),
        "evals": Key(
            ListOf(Text(), single="list", nonempty=True), "eval specs: files, directories and globs", required=True
        ),
        "vary": Key(ListOf(PointerShape()), "JSON Pointers to what may differ between variants"),
        "variants": Key(MapOf(RawShape("variant"), nullable=True), "variants by name"),
        "matrix": Key(MapOf(RawShape("axis")), "axes by name; their product makes the variants"),
        "baseline": Key(RawShape("baseline"), "the variant that others are compared with"),
        "overrides": Key(SectionOf(DEFAULTS), "keys of defaults to replace in all variants"),
        "execution": Key(SectionOf(EXECUTION), "how it runs"),
        "metadata": Key(OpaqueMapping(), "handed to reporters"),
    },
    unknown=_unknown,
    ignored={"grader_plugins": _REGISTER, "executor_plugins": _REGISTER, "eval_plugin": _REGISTER},
    open=True,
    misplaced={
        **dict.fromkeys(SCORING.keys, "scoring of the evals"),
        **dict.fromkeys(DEFAULTS.keys, "overrides"),
    },
)

_VARIANT_RULE: Rule = MappingProxyType(
    {
        "description": LITERAL,
        "overrides": DEFAULTS_RULE,
        "environment": ENVIRONMENT_RULE,
        "agent_environment": ENVIRONMENT_RULE,
    }
)
VARIANTS_RULE: Rule = MappingProxyType({ANY: _VARIANT_RULE})
_SETTINGS = ("name", "version", "evals", "vary", "baseline", "execution", "metadata")
EXPERIMENT_RULE: Rule = MappingProxyType(
    {**dict.fromkeys(_SETTINGS, SETTING), "description": LITERAL, "overrides": DEFAULTS_RULE, ANY: IGNORED}
)
"""The rule for everything but variants and matrix, which may hold variables of the eval."""


def axis_rule(path: str) -> Rule:
    """The rule for an axis that sets what a JSON Pointer names."""
    first, *below = tokens_of(path) or ("",)
    rule: Rule = DEFAULTS_RULE if first == "defaults" else ENVIRONMENT_RULE
    for token in below:
        rule = rule_below(rule, token)
    # A value stands in the list itself, or below its label.
    values: Rule = rule if isinstance(rule, str) else MappingProxyType({ANY: MappingProxyType({ANY: rule})})
    return MappingProxyType({"path": SETTING, "values": values})
