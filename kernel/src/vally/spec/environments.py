"""Environments: the three keys of a spec and the named ones of the project file, read layer by layer and merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import Environment
from vally.model.merging import environment_of, merge_environment_mappings
from vally.spec.diagnostics import Collector, Place
from vally.spec.git_sources import read_git, read_git_shape
from vally.spec.loading import Loading, shown_path
from vally.spec.mcp_servers import ENV_NAME, read_servers
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.paths import absolute
from vally.spec.placeholders import ENVIRONMENT_RULE
from vally.spec.scalars import scalar_value, shown
from vally.spec.sections import Key, Section, Table, read_section, wrong_type
from vally.spec.shapes import DurationShape, ListOf, MapOf, RawShape, Text, TextOfScalar
from vally.spec.skills import offered_skills
from vally.spec.staged_files import read_files
from vally.text.suggest import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

_RESERVED = frozenset({"EVALUATE_WORKSPACE", "EVALUATE_GRADER_INPUT", "EVALUATE_ASSETS", "EVALUATE_SEED"})
_RESERVED_PREFIX = "VALLY_"


def check_env_name(key: ScalarNode, place: Place, collector: Collector) -> bool:
    """Report names of environment variables that a spec may not set."""
    name = key.text
    if not ENV_NAME.fullmatch(name):
        collector.add(
            "invalid-value",
            key,
            place.key(name),
            key=place.label,
            value=f"'{name}'",
            expected="a name of letters, digits and _",
        )
    elif name.upper() in _RESERVED or name.upper().startswith(_RESERVED_PREFIX):
        collector.add("reserved-env-name", key, place.key(name), name=name)
    else:
        return True
    return False


def _any_case(text: str) -> str:
    """A pattern for a text in any letter case."""
    return "".join(f"[{letter}{letter.lower()}]" if letter.isalpha() else letter for letter in text)


_REFUSED = "|".join([_any_case(_RESERVED_PREFIX), *(f"{_any_case(name)}$" for name in sorted(_RESERVED))])
_ENV = MapOf(TextOfScalar(), check=check_env_name, nullable=True, names=f"(?!{_REFUSED}){ENV_NAME.pattern}")
_GRADING_KEYS = {
    "files": Key(ListOf(RawShape("file")), "files and directories to copy in"),
    "commands": Key(ListOf(Text(), single="warning"), "set-up commands"),
    "commandTimeout": Key(DurationShape(), "limit of each command", default="60s"),
    "env": Key(_ENV, "environment variables", nullable=True),
}
GRADING_ENVIRONMENT = Table("grading_environment", _GRADING_KEYS)
ENVIRONMENT = Table(
    "environment",
    {
        "skills": Key(ListOf(Text(), single="warning"), "skill directories offered to the agent"),
        **_GRADING_KEYS,
        "git": Key(RawShape("git"), "repository as the base of the workspace"),
        "mcpServers": Key(MapOf(RawShape("mcp-server"), nullable=True), "MCP servers by name", nullable=True),
    },
)


@dataclass(frozen=True, slots=True)
class NamedEnvironment:
    """An environment of the project file, with its placeholders."""

    name: str
    node: Node


@dataclass(slots=True)
class Layer:
    """One environment as written: `actual` has the values the run uses, `shown` what records show, by spec key."""

    node: Node | None = None
    place: Place = field(default_factory=Place)
    actual: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    skills: list[tuple[Path, Node, Place]] = field(default_factory=list)
    lacks_skills: bool = False
    """Some skill that it lists was not found, so that nothing can be said about the list."""


NO_LAYER = Layer()
ENVIRONMENT_KEYS = ("environment", "agent_environment", "grading_environment")


def read_layers(loading: Loading, section: Section) -> dict[str, Layer]:
    """The three environment keys of a root or a stimulus."""
    layers = {}
    for key in ENVIRONMENT_KEYS:
        table = GRADING_ENVIRONMENT if key == "grading_environment" else ENVIRONMENT
        layers[key] = read_layer(loading, section.get(key), section.place.key(key).named(key), table=table)
    return layers


def read_layer(loading: Loading, node: Node | None, place: Place, *, table: Table = ENVIRONMENT) -> Layer:
    """Read the value of an environment key, a mapping or a name; absent is an empty layer."""
    if node is None:
        return NO_LAYER
    if isinstance(node, ScalarNode):
        named = _named(loading, node, place)
        return named if table is ENVIRONMENT else _restricted(loading, named, node, place, table)
    section = read_section(node, table, place, loading.collector)
    return NO_LAYER if section is None else _layer(loading, section)


def _named(loading: Loading, node: ScalarNode, place: Place) -> Layer:
    named = named_environment(loading, node, place)
    if named is None:
        return NO_LAYER
    if ("environment", named.name) not in loading.memo:
        loading.memo["environment", named.name] = _project_layer(loading, named)
    layer: Layer = loading.memo["environment", named.name]
    return layer


def named_environment(loading: Loading, node: ScalarNode, place: Place) -> NamedEnvironment | None:
    """The environment of the project file that a scalar names, or None after a diagnostic."""
    if node.unresolved:
        return None
    name = scalar_value(node)
    if not isinstance(name, str) or not name.strip():
        wrong_type(node, place, loading.collector, "a mapping or the name of an environment")
        return None
    named = loading.project.environments.get(name)
    if isinstance(named, NamedEnvironment):
        return named
    names = sorted(loading.project.environments)
    hints = [did_you_mean(name, names), f"environments: {', '.join(names) or 'none'}"]
    hint = "; ".join(text for text in hints if text)
    loading.collector.add("unknown-environment", node, place, hint=hint, name=name)
    return None


def filled_environment(loading: Loading, named: NamedEnvironment) -> Node:
    """The content of a named environment with its placeholders filled."""
    return loading.filler.fill(named.node, ENVIRONMENT_RULE, environment_place(named.name))


def _project_layer(loading: Loading, named: NamedEnvironment) -> Layer:
    """A named environment at its use: its shape was checked with the project file, its placeholders and paths now."""
    filled = filled_environment(loading, named)
    section = read_section(filled, ENVIRONMENT, environment_place(named.name), Collector(muted=True))
    return NO_LAYER if section is None else _layer(loading, section)


def environment_place(name: str) -> Place:
    """Where a named environment stands in the project file."""
    return Place("/environments").key(name).named("environment", f"environment '{name}'")


def _restricted(loading: Loading, layer: Layer, node: Node, place: Place, table: Table) -> Layer:
    for key in layer.actual:
        if key not in table.keys:
            loading.collector.add("unknown-key", node, place, key=key, where=place.label)
    kept = Layer(layer.node, layer.place)
    kept.actual = {key: value for key, value in layer.actual.items() if key in table.keys}
    kept.shown = {key: value for key, value in layer.shown.items() if key in table.keys}
    return kept


def _layer(loading: Loading, section: Section) -> Layer:
    layer = Layer(section.node, section.place)
    written = section.written.get("skills")
    if written is not None:
        layer.lacks_skills = len(section.get("skills", ())) < len(getattr(written, "items", (written,)))
    for key, value in section.values.items():
        place = section.place.key(key)
        if key == "skills":
            _read_skills(loading, layer, value, place)
        elif key == "files":
            layer.actual[key], layer.shown[key] = read_files(loading, value, place)
        elif key == "commands":
            layer.actual[key], layer.shown[key] = list(value), list(value)
        elif key == "commandTimeout":
            layer.actual[key], layer.shown[key] = tuple(value), value.text
        elif key == "git":
            if (git := read_git(loading, value, place)) is not None:
                layer.actual[key], layer.shown[key] = git
        elif key == "mcpServers":
            layer.actual[key], layer.shown[key] = read_servers(loading, value, place)
        elif key == "env":
            layer.actual[key], layer.shown[key] = value, _shown_env(section.written[key], value)
    return layer


def _shown_env(node: Node, values: Mapping[str, str | None]) -> dict[str, str | None]:
    shown_values = dict(values)
    if isinstance(node, MappingNode):
        for key, item in node.entries:
            if values.get(key.text) is not None and isinstance(item, ScalarNode):
                shown_values[key.text] = shown(item)
    return shown_values


def _read_skills(loading: Loading, layer: Layer, items: Any, place: Place) -> None:
    """Only an empty list as written clears; one whose skills are all missing does not."""
    shown_skills: list[str] = []
    for _, node, at in loading.collector.until_full(items.placed(place)):
        found = offered_skills(loading, node, at)
        layer.lacks_skills = layer.lacks_skills or not found
        layer.skills += [(path, node, at) for path in found]
        # A missing one is shown too: hashes must not depend on what is there.
        shown_skills += [shown_path(node, path) for path in found or [absolute(node.source.base, node.text)]]
    layer.shown["skills"] = shown_skills
    if layer.skills or not items:
        layer.actual["skills"] = [path for path, _, _ in layer.skills]


@dataclass(frozen=True, slots=True)
class Merged:
    """Layers merged in order."""

    layers: tuple[Layer, ...]
    actual: Mapping[str, Any]
    shown: Mapping[str, Any]

    @property
    def place(self) -> Place:
        """Where the innermost of them stands."""
        return next((layer.place for layer in reversed(self.layers) if layer.node is not None), Place())

    @property
    def environment(self) -> Environment:
        """The dataclass of it."""
        return environment_of(self.actual)


def merge_layers(loading: Loading, *layers: Layer) -> Merged:
    """Merge layers, later ones over earlier ones; the same layers are merged once."""
    layers = tuple(layer for layer in layers if layer is not NO_LAYER)
    key = ("layers", *map(id, layers))
    if key not in loading.memo:
        # The result keeps the layers, so that their identities stay their own.
        loading.memo[key] = Merged(
            layers,
            merge_environment_mappings(*(layer.actual for layer in layers), real=loading.real_path),
            merge_environment_mappings(*(layer.shown for layer in layers), real=loading.real_path),
        )
    merged: Merged = loading.memo[key]
    return merged


def check_named(node: Node, name: str, collector: Collector) -> None:
    """Check the shape of an environment of the project file; what is missing on disk is found when a spec uses it."""
    place = environment_place(name)
    section = read_section(node, ENVIRONMENT, place, collector)
    if section is None:
        return
    from vally.spec.mcp_servers import check_servers
    from vally.spec.staged_files import check_files

    if "git" in section.values:
        read_git_shape(section.values["git"], place.key("git"), collector)
    if "files" in section.values:
        check_files(section.values["files"], place.key("files"), collector)
    if section.get("mcpServers"):
        check_servers(section.values["mcpServers"], place.key("mcpServers"), collector)
