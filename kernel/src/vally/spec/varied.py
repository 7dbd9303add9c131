"""One eval in the variants of an experiment: its file is read once, and each variant laid over its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vally.model.evalspec import Defaults, Diagnostic, EvalSpec
from vally.spec.building import ReadSpec, finish_spec, read_spec
from vally.spec.capabilities import KEYS, Capabilities, skills_of
from vally.spec.defaults import DEFAULTS, read_defaults
from vally.spec.diagnostics import Place
from vally.spec.effective import Effective, make_effective, merge_environments
from vally.spec.environments import (
    GRADING_ENVIRONMENT,
    Layer,
    filled_environment,
    named_environment,
    read_layer,
)
from vally.spec.eval_variables import VariableFiller, variables_of
from vally.spec.loader import parse_spec
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.scalars import is_null
from vally.spec.sections import Section, read_section
from vally.spec.settings import Setting, lay_over_defaults, merge_nodes, nested

_GRADING = "grading_environment"
Change = tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class VariedDefaults:
    """The defaults of a variant: for the run, as read, and the tree."""

    values: Defaults
    section: Section | None
    tree: MappingNode | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class VariedStimuli:
    """The environments of a variant and what they make of the stimuli; `trees` are those of the root environments."""

    layers: Mapping[str, Layer]
    trees: Mapping[str, Node | None]
    effective: tuple[Effective, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class VariedSpec:
    """One variant of an eval."""

    spec: EvalSpec
    defaults: VariedDefaults
    stimuli: VariedStimuli

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found of this variant, beside what all share."""
        return (*self.defaults.diagnostics, *self.stimuli.diagnostics)


@dataclass(slots=True)
class VariedEval:
    """An eval that was read once. What equal settings make is made once too."""

    loading: Loading
    read: ReadSpec
    defaults: dict[tuple[int, ...], VariedDefaults] = field(default_factory=dict)
    stimuli: dict[tuple[int, ...], VariedStimuli] = field(default_factory=dict)
    filled: dict[int, Setting] = field(default_factory=dict)

    def apply(self, settings: Sequence[Setting]) -> VariedSpec:
        """The eval with these settings, in order."""
        defaults = self._defaults(tuple(item for item in settings if item.key == "defaults"))
        stimuli = self._stimuli(tuple(item for item in settings if item.key != "defaults"))
        pair = (defaults.values, defaults.section)
        spec = finish_spec(self.loading, self.read, pair, stimuli.layers, stimuli.effective)
        return VariedSpec(spec, defaults, stimuli)

    def _in_eval(self, setting: Setting, loading: Loading) -> Setting:
        """A setting with the variables of this eval; the same one when it has none."""
        if not setting.value.holes_inside:
            return setting
        filler = VariableFiller(loading.source.display, variables_of(loading.source.display), loading.collector)
        return replace(setting, value=filler.fill(setting.value))

    def _defaults(self, settings: Change) -> VariedDefaults:
        key = tuple(map(id, settings))
        if key not in self.defaults:
            self.defaults[key] = self._read_defaults(settings)
        return self.defaults[key]

    def _read_defaults(self, settings: Change) -> VariedDefaults:
        loading = self.loading.fresh()
        tree = self.read.section.written.get("defaults")
        section: Section | None = self.read.section.get("defaults")
        place = Place().key("defaults")
        merged = tree if isinstance(tree, MappingNode) else None
        for setting in settings:
            merged = lay_over_defaults(merged, self._in_eval(setting, loading))
        if settings and merged is not None:
            section = read_section(merged, DEFAULTS, place, loading.collector)
        values = read_defaults(loading, section)
        return VariedDefaults(values, section, merged, loading.collector.ordered())

    def _stimuli(self, settings: Change) -> VariedStimuli:
        key = tuple(map(id, settings))
        if key not in self.stimuli:
            self.stimuli[key] = self._make_stimuli(settings)
        return self.stimuli[key]

    def _make_stimuli(self, settings: Change) -> VariedStimuli:
        loading = self.loading.fresh()
        section = self.read.section
        changes = [self._in_eval(setting, loading) for setting in settings]
        trees: dict[str, Node | None] = {}
        layers: dict[str, Layer] = {}
        servers: list[tuple[str, Node]] = []
        for key in KEYS:
            own = [change for change in changes if change.key == key]
            trees[key], changed = _root_environment(loading, section.get(key), own, section.place.key(key))
            layers[key] = read_layer(loading, trees[key], section.place.key(key).named(key))
            servers += [(key, node) for node in changed]
        trees[_GRADING] = section.get(_GRADING)
        place = section.place.key(_GRADING).named(_GRADING)
        layers[_GRADING] = read_layer(loading, trees[_GRADING], place, table=GRADING_ENVIRONMENT)
        set_in = [key for key in KEYS if _sets_skills(loading, changes, key, place)]
        capabilities = Capabilities(skills_of(loading, layers, set_in), tuple(servers))
        effective = []
        for parts in self.read.stimuli:
            environments = merge_environments(loading, layers, parts.layers)
            effective.append(make_effective(loading, capabilities.apply(loading, environments), parts))
        return VariedStimuli(layers, trees, tuple(effective), loading.collector.ordered())


def read_varied(loading: Loading) -> VariedEval | None:
    """Read the file of a load; None when it has no usable structure."""
    tree = parse_spec(loading)
    read = None if tree is None else read_spec(loading, tree)
    return None if read is None else VariedEval(loading, read)


def _content(loading: Loading, node: Node | None, place: Place) -> Node | None:
    """An environment as a tree: a name stands for what the project file has."""
    if not isinstance(node, ScalarNode):
        return node
    named = None if is_null(node) else named_environment(loading, node, place)
    return None if named is None else filled_environment(loading, named)


def _root_environment(
    loading: Loading, root: Node | None, changes: Sequence[Setting], place: Place
) -> tuple[Node | None, list[Node]]:
    """A root environment with the settings laid over it, and what they say of servers, in order."""
    if not changes:
        return root, []
    tree = _content(loading, root, place)
    servers: list[Node] = []
    for change in changes:
        if isinstance(change.value, ScalarNode) and not change.steps:
            # A name replaces the environment; null changes nothing.
            tree = _content(loading, change.value, place) or tree
            servers += [] if is_null(change.value) else _servers(tree)
        else:
            over = nested(tree, change.steps, change.value, change.at)
            servers += _servers(over)
            tree = merge_nodes(tree, over)
    return tree, servers


def _servers(over: Node | None) -> list[Node]:
    """What a tree says of servers: a mapping or null; anything else was reported."""
    servers = over.get("mcpServers") if isinstance(over, MappingNode) else None
    return [servers] if servers is not None and (is_null(servers) or isinstance(servers, MappingNode)) else []


def _sets_skills(loading: Loading, changes: Sequence[Setting], key: str, place: Place) -> bool:
    return any(_says_skills(loading, change, place) for change in changes if change.key == key)


def _says_skills(loading: Loading, change: Setting, place: Place) -> bool:
    if change.steps:
        return change.steps[0] == "skills"
    content = _content(loading, change.value, place)
    return isinstance(content, MappingNode) and content.key("skills") is not None
