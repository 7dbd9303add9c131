"""Capability keys: what a variant says of `skills` and `mcpServers` holds for every stimulus, whatever it adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally.spec.diagnostics import Place
from vally.spec.effective import EFFECTIVE, Environments
from vally.spec.environments import Layer, Merged, merge_layers, read_layer
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode
from vally.spec.scalars import is_null
from vally.spec.settings import merge_nodes

KEYS = ("environment", "agent_environment")
_SKILLS, _SERVERS = "skills", "mcpServers"


@dataclass(frozen=True, slots=True, eq=False)
class Capabilities:
    """What a variant sets: the skills of each environment, None to leave them alone, and the changes to servers."""

    skills: Mapping[str, Merged] | None
    servers: tuple[tuple[str, Node], ...]

    def apply(self, loading: Loading, environments: Environments) -> Environments:
        """The environments of a stimulus with the settings in place of what was merged."""
        if self.skills is not None:
            changed = {key: _with_skills(loading, environments[key], new) for key, new in self.skills.items()}
            environments = {**environments, **changed}
        return self._with_servers(loading, environments) if self.servers else environments

    def _with_servers(self, loading: Loading, environments: Environments) -> Environments:
        before = _server_nodes(environments[EFFECTIVE])
        after = dict(before)
        declared: dict[str, set[str]] = {key: set() for key in KEYS}
        for key, change in self.servers:
            if is_null(change):
                after.clear()
                continue
            merged = merge_nodes(_mapping(change, after), change)
            assert isinstance(merged, MappingNode)
            after = {name.text: node for name, node in merged.entries}
            declared[key] |= {name.text for name, _ in change.entries} if isinstance(change, MappingNode) else set()
        layer = self._layer(loading, {name: node for name, node in after.items() if before.get(name) is not node})
        changed = {**environments, EFFECTIVE: _with_layer(environments[EFFECTIVE], layer, after, set(after))}
        for key in KEYS:
            names = declared[key] | set(environments[key].actual.get(_SERVERS, {}))
            changed[key] = _with_layer(environments[key], layer, after, names)
        return changed

    def _layer(self, loading: Loading, nodes: Mapping[str, Node]) -> Layer:
        key, at = self.servers[-1]
        tree = MappingNode(at.source, at.line, at.column, [Entry(_name(at, _SERVERS), _mapping(at, nodes))])
        read = read_layer(loading, tree, Place().key(key).named(key))
        # Without a place: findings about a stimulus stand at what it says itself.
        return Layer(actual=read.actual, shown=read.shown)


def _name(at: Node, text: str) -> ScalarNode:
    return ScalarNode(at.source, at.line, at.column, text, '"')


def _mapping(at: Node, nodes: Mapping[str, Node]) -> MappingNode:
    entries = [Entry(_name(node, name), node) for name, node in nodes.items()]
    return MappingNode(at.source, at.line, at.column, entries)


def _server_nodes(merged: Merged) -> dict[str, Node]:
    """The servers of an environment as trees: of each name that of the last layer that has it."""
    nodes: dict[str, Node] = {}
    for layer in merged.layers:
        servers = layer.node.get(_SERVERS) if isinstance(layer.node, MappingNode) else None
        for name, node in servers.entries if isinstance(servers, MappingNode) else ():
            if is_null(node):
                nodes.pop(name.text, None)
            else:
                nodes[name.text] = node
    return nodes


def _with_layer(merged: Merged, layer: Layer, kept: Mapping[str, Node], names: set[str]) -> Merged:
    """An environment with these servers, those of the layer in place of its own."""

    def put(own: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        found = {**own.get(_SERVERS, {}), **new.get(_SERVERS, {})}
        servers = {name: server for name, server in found.items() if name in kept and name in names}
        rest = {key: value for key, value in own.items() if key != _SERVERS}
        return {**rest, _SERVERS: servers} if servers else rest

    return Merged((*merged.layers, layer), put(merged.actual, layer.actual), put(merged.shown, layer.shown))


def skills_of(loading: Loading, layers: Mapping[str, Layer], keys: Sequence[str]) -> Mapping[str, Merged] | None:
    """The skills that a variant sets in some environments; what another environment lists is not offered any more."""
    if not keys:
        return None
    alone = {key: _skills_alone(layers[key]) for key in keys}
    by_key = {key: merge_layers(loading, *([alone[key]] if key in alone else [])) for key in KEYS}
    return {**by_key, EFFECTIVE: merge_layers(loading, *alone.values())}


def _skills_alone(layer: Layer) -> Layer:
    return Layer(
        layer.node,
        layer.place,
        {key: value for key, value in layer.actual.items() if key == _SKILLS},
        {key: value for key, value in layer.shown.items() if key == _SKILLS},
        layer.skills,
        layer.lacks_skills,
    )


def _with_skills(loading: Loading, merged: Merged, new: Merged) -> Merged:
    """An environment with the skills of another in place of its own."""
    key = ("skills", id(merged), id(new))
    if key not in loading.memo:
        others = [_without_skills(layer) for layer in merged.layers]
        actual, shown = _put_skills(merged.actual, new.actual), _put_skills(merged.shown, new.shown)
        # The arguments are kept too, so that their identities stay their own.
        loading.memo[key] = (merged, new, Merged((*others, *new.layers), actual, shown))
    changed: Merged = loading.memo[key][2]
    return changed


def _put_skills(own: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in own.items() if key != _SKILLS}
    return {**rest, **new}


def _without_skills(layer: Layer) -> Layer:
    if not layer.skills and not layer.lacks_skills:
        return layer
    return Layer(layer.node, layer.place, layer.actual, layer.shown)
