"""Loading an eval spec: read, fill, rewrite, check, expand, merge, check again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import PluginError, SpecError
from vally.model.evalspec import Diagnostic, EvalSpec, Position, Project
from vally.spec.defaults import read_defaults
from vally.spec.diagnostics import Collector, Place, adjust, raise_errors
from vally.spec.effective import Effective, check_names_across, make_effective, read_root
from vally.spec.files import SPEC_BYTES, read_file
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode, Source
from vally.spec.paths import relative_display
from vally.spec.placeholders import SPEC_RULE, Parameters
from vally.spec.plain_nodes import nodes_of
from vally.spec.project import environment_params, find_project
from vally.spec.reader import read_yaml
from vally.spec.scoring import check_weights, read_scoring, shown_scoring, weight_keys
from vally.spec.sections import Section, read_section, wrong_type
from vally.spec.shapes import read_plain
from vally.spec.spec_keys import SPEC
from vally.spec.stimuli import ReadStimulus, check_names, read_stimuli
from vally.spec.templates import expand_rows

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.records import ForeignSpec

_EVAL_SUFFIX = re.compile(r"(?:^|/)eval$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSpec:
    """The outcome of reading one spec.

    `spec` is None when the file has no usable structure; it may exist beside errors. `used_params` are the names of
    all parameters that the files mention, `environment_values` the process variables that placeholders used.
    """

    spec: EvalSpec | None
    diagnostics: tuple[Diagnostic, ...]
    used_params: frozenset[str] = frozenset()
    environment_values: Mapping[str, str]
    tree: Node | None = field(default=None, repr=False, compare=False)

    def position(self, pointer: str) -> Position | None:
        """Where the value at a JSON Pointer stands in the file, or the innermost value around it that is there."""
        node = self.tree
        for step in pointer.split("/")[1:]:
            found = None if node is None else _below(node, step.replace("~1", "/").replace("~0", "~"))
            if found is None:
                break
            node = found
        return None if node is None else Position(file=node.source.display, line=node.line, column=node.column)


def _below(node: Node, step: str) -> Node | None:
    if isinstance(node, MappingNode):
        return node.get(step)
    if isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.items):
        return node.items[int(step)]
    return None


def load_eval_spec(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
) -> EvalSpec:
    """Load a spec; raises SpecError with all diagnostics when any of them is an error.

    Without `project` the project file is looked up, without `host` installed plugins are used. `environ` are the
    variables that placeholders may use, by default none.
    """
    loaded = read_eval_spec(path, params=params, project=project, host=host, environ=environ)
    raise_errors(loaded.diagnostics)
    if loaded.spec is None:
        raise SpecError(f"{path}: nothing to load", diagnostics=loaded.diagnostics)
    return loaded.spec


def read_eval_spec(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
    strict: bool = False,
    lint: bool = False,
    skill_dirs: bool = False,
) -> LoadedSpec:
    """Read a spec with every diagnostic; never raises for what the file holds.

    `strict` raises warnings to errors, `lint` uses the levels of `vally lint`, `skill_dirs` says that skills are
    offered where a stimulus declares none. Raises PluginError when a plugin the user named cannot be used.
    """
    loading = _loading(Path(path), None, project, host, lint=lint, skill_dirs=skill_dirs)
    loading.parameters = Parameters(params or {}, environ or {})
    return _loaded(loading, _parsed(loading), strict=strict)


def read_foreign_spec(
    foreign: ForeignSpec,
    path: str | Path,
    *,
    project: Project | None = None,
    host: PluginHost | None = None,
    strict: bool = False,
    lint: bool = False,
    skill_dirs: bool = False,
) -> LoadedSpec:
    """Like read_eval_spec for a spec that an eval provider made from the file at `path`; placeholders are text."""
    loading = _loading(Path(path), foreign.base_dir, project, host, lint=lint, skill_dirs=skill_dirs)
    node = nodes_of(foreign.spec, loading.source, foreign.positions)
    assert isinstance(node, MappingNode)
    return _loaded(loading, node, strict=strict)


def _loading(
    path: Path,
    base: Path | None,
    project: Project | None,
    host: PluginHost | None,
    *,
    lint: bool,
    skill_dirs: bool,
) -> Loading:
    absolute = path.absolute()
    if project is None:
        project = find_project(absolute.parent, Path.cwd())
    return Loading(
        source=Source(
            relative_display(absolute, project.root, Path.cwd()), absolute, (base or absolute.parent).absolute()
        ),
        collector=Collector(lint=lint),
        project=project,
        host=host if host is not None else _installed_plugins(),
        skill_dirs=skill_dirs,
    )


def _loaded(loading: Loading, node: MappingNode | None, *, strict: bool) -> LoadedSpec:
    spec = None if node is None else _build(loading, node)
    diagnostics = adjust(loading.collector.ordered(), strict=strict)
    return LoadedSpec(
        spec=None if spec is None else replace(spec, diagnostics=diagnostics),
        diagnostics=diagnostics,
        used_params=frozenset(loading.parameters.mentioned) | environment_params(loading.project),
        environment_values=dict(loading.parameters.from_environment),
        tree=node,
    )


def _installed_plugins() -> PluginHost:
    from vally.host import PluginHost

    return PluginHost()


def _parsed(loading: Loading) -> MappingNode | None:
    """Steps 1 to 4: the tree with placeholders filled and older spellings rewritten, or None after an error."""
    collector, source = loading.collector, loading.source
    data = read_file(source.path, source, SPEC_BYTES, collector)
    node = None if data is None else read_yaml(data, source, collector)
    if collector.has_errors:
        return None
    if node is None:
        collector.add("empty-document", Node(source, 1, 1))
        return None
    if not isinstance(node, MappingNode):
        wrong_type(node, Place(), collector, "a mapping", title="an eval spec")
        return None
    filled = loading.filler.fill(node, SPEC_RULE)
    assert isinstance(filled, MappingNode)
    return _rewritten(filled, collector)


def _rewritten(node: MappingNode, collector: Collector) -> MappingNode:
    """Older names of keys at the root, `config` for `defaults`."""
    ((old, new),) = SPEC.renamed.items()
    key = node.key(old)
    if key is None:
        return node
    place = Place().key(old)
    if node.key(new) is not None:
        collector.add("config-and-defaults", key, place)
        entries = [entry for entry in node.entries if entry.key.text != old]
    else:
        collector.add("deprecated-key", key, place, old=old, new=new)
        renamed = ScalarNode(key.source, key.line, key.column, new, key.style)
        entries = [Entry(renamed if entry.key is key else entry.key, entry.value) for entry in node.entries]
    return MappingNode(node.source, node.line, node.column, entries)


def _build(loading: Loading, node: MappingNode) -> EvalSpec | None:
    """Steps 5 to 10."""
    section = read_section(node, SPEC, Place(), loading.collector)
    if section is None:
        return None
    defaults = read_defaults(loading, section.get("defaults"))
    root = read_root(loading, section)
    stimuli = _stimuli(loading, section)
    effective = [make_effective(loading, root, stimulus) for stimulus in stimuli]
    check_names_across(loading.collector, effective)
    scoring = read_scoring(section.get("scoring"))
    _check_whole(loading, section, effective, bool(scoring.threshold is not None))
    return EvalSpec(
        name=section.get("name") or default_name(loading.source.display),
        path=loading.source.path,
        display_path=loading.source.display,
        description=section.get("description"),
        version=section.get("version"),
        type=section.get("type"),
        defaults=defaults,
        stimuli=tuple(item.stimulus for item in effective if item.usable),
        scoring=scoring,
        tags=section.get("tags", {}),
        metadata=section.get("metadata", {}),
        document=_document(section, root.layers, effective),
    )


def _stimuli(loading: Loading, section: Section) -> list[ReadStimulus]:
    place = Place().key("stimuli")
    stimuli = read_stimuli(loading, section.get("stimuli"), place)
    rows = section.get("stimuli_from")
    if rows is not None:
        stimuli += expand_rows(loading, rows, Place().key("stimuli_from"))
    check_names(loading, stimuli)
    written = section.written.get("stimuli")
    if rows is None and (written is None or (isinstance(written, SequenceNode) and not written.items)):
        loading.collector.add("no-stimuli", written or section.node, place)
    return stimuli


def _check_whole(loading: Loading, section: Section, effective: list[Effective], threshold: bool) -> None:
    collector = loading.collector
    nested = section.get("scoring")
    try:
        types = loading.host.records("grader")
    except PluginError:
        types = {}
    check_weights(weight_keys(nested), types, [item.entries for item in effective], collector)
    golden = any(
        item.stimulus.golden_patch or item.stimulus.golden_command or item.stimulus.golden_trajectory
        for item in effective
    )
    if section.get("type") == "regression" and not threshold and not golden:
        collector.add("regression-without-baseline", section.at("type"), Place().key("type"))


def default_name(display: str) -> str:
    """The label of a spec without `name`: its path without extension and without a final `/eval`."""
    stem = re.sub(r"\.[^./]+$", "", display)
    return _EVAL_SUFFIX.sub("", stem) or stem


def _document(section: Section, layers: Mapping[str, Any], effective: list[Effective]) -> dict[str, Any]:
    """The effective spec with spec keys."""
    document: dict[str, Any] = {
        key: section.get(key) for key in ("name", "description", "version", "type") if key in section.values
    }
    defaults = section.get("defaults")
    if defaults is not None:
        document["defaults"] = _plain_defaults(defaults)
    document.update({key: deepcopy(layer.shown) for key, layer in layers.items() if layer.shown})
    document["stimuli"] = [deepcopy(item.stimulus.document) for item in effective if item.usable]
    if section.get("scoring") is not None:
        document["scoring"] = shown_scoring(section.get("scoring"))
    if section.get("tags"):
        document["tags"] = {
            key: value if isinstance(value, str) else list(value) for key, value in section.get("tags").items()
        }
    if section.get("metadata"):
        document["metadata"] = section.get("metadata")
    return document


def _plain_defaults(section: Section) -> dict[str, Any]:
    plain = {}
    for key, value in section.values.items():
        if isinstance(value, Node):
            plain[key] = read_plain(value, Place(), Collector(muted=True), written=True)
        else:
            plain[key] = getattr(value, "text", value)
    return {key: value for key, value in plain.items() if isinstance(value, str | int | float | dict | list)}
