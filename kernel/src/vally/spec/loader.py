"""Loading an eval spec: read, fill, rewrite, check, expand, merge, check again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally.errors import SpecError
from vally.model.evalspec import Diagnostic, EvalSpec, Position, Project
from vally.spec import paths
from vally.spec.building import build_spec
from vally.spec.diagnostics import Collector, Place, adjust, raise_errors
from vally.spec.files import SPEC_BYTES
from vally.spec.garbage import no_collections
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, Source
from vally.spec.placeholders import SPEC_RULE, Parameters
from vally.spec.plain_nodes import nodes_of
from vally.spec.pointer_positions import position_below
from vally.spec.project import environment_params, find_project
from vally.spec.reader import read_mapping
from vally.spec.spec_keys import SPEC

if TYPE_CHECKING:
    from vally.foreign import ForeignSpec
    from vally.host import PluginHost


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
    redact: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """Takes the secrets that placeholders used out of a text."""

    def position(self, pointer: str) -> Position | None:
        """Where the value at a JSON Pointer stands in the file, or the innermost value around it that is there."""
        return position_below(self.tree, pointer)


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


@no_collections()
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
    content: bytes | None = None,
) -> LoadedSpec:
    """Read a spec with every diagnostic; never raises for what the file holds.

    `strict` raises warnings to errors, `lint` uses the levels of `vally lint`, `skill_dirs` says that skills are
    offered where a stimulus declares none, `content` stands for what the file holds. Raises PluginError when a plugin
    the user named cannot be used.
    """
    parameters = Parameters(params or {}, environ or {})
    loading = start_loading(
        Path(path), None, project, host, parameters, lint=lint, skill_dirs=skill_dirs, content=content
    )
    return _loaded(loading, parse_spec(loading), strict=strict)


@no_collections()
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
    loading = start_loading(Path(path), foreign.base_dir, project, host, lint=lint, skill_dirs=skill_dirs)
    node = nodes_of(foreign.spec, loading.source, foreign.positions)
    assert isinstance(node, MappingNode)
    return _loaded(loading, node, strict=strict)


def start_loading(
    path: Path,
    base: Path | None,
    project: Project | None,
    host: PluginHost | None,
    parameters: Parameters | None = None,
    *,
    lint: bool,
    skill_dirs: bool,
    content: bytes | None = None,
) -> Loading:
    """The start of a load: the file, its project, and the plugins."""
    absolute = paths.absolute(Path.cwd(), str(path))
    if project is None:
        project = find_project(absolute.parent, Path.cwd())
    return Loading(
        source=Source(
            paths.relative_display(absolute, project.root, Path.cwd()),
            absolute,
            (base or absolute.parent).absolute(),
            content,
        ),
        collector=Collector(lint=lint),
        project=project,
        host=host if host is not None else _installed_plugins(),
        parameters=parameters or Parameters(),
        skill_dirs=skill_dirs,
    )


def _loaded(loading: Loading, node: MappingNode | None, *, strict: bool) -> LoadedSpec:
    spec = None if node is None else build_spec(loading, node)
    diagnostics = adjust(loading.collector.ordered(), strict=strict)
    return LoadedSpec(
        spec=None if spec is None else replace(spec, diagnostics=diagnostics),
        diagnostics=diagnostics,
        used_params=frozenset(loading.parameters.mentioned) | environment_params(loading.project),
        environment_values=dict(loading.parameters.from_environment),
        tree=node,
        redact=loading.parameters.redacted,
    )


def _installed_plugins() -> PluginHost:
    from vally.host import PluginHost

    return PluginHost()


def parse_spec(loading: Loading) -> MappingNode | None:
    """Steps 1 to 4: the tree with placeholders filled and older spellings rewritten, or None after an error."""
    collector = loading.collector
    node = read_mapping(loading.source, SPEC_BYTES, collector, "an eval spec")
    if node is None:
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
        renamed.original = old
        entries = [Entry(renamed if entry.key is key else entry.key, entry.value) for entry in node.entries]
    return MappingNode(node.source, node.line, node.column, entries)
