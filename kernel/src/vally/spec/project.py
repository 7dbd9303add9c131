"""The project file: finding it, reading it, and the project it describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vally.model.evalspec import Position, Project, Suite
from vally.spec import paths
from vally.spec.diagnostics import Collector, Place, escape, raise_errors
from vally.spec.environments import NamedEnvironment, check_named
from vally.spec.files import PROJECT_BYTES, read_file
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Source
from vally.spec.placeholders import ENVIRONMENT_RULE, Filler, Parameters, mentioned_names
from vally.spec.reader import read_yaml
from vally.spec.scalars import is_null, scalar_value
from vally.spec.sections import INVALID, Key, Section, Table, read_section, wrong_type
from vally.spec.shapes import ListOf, MapOf, OpaqueMapping, RawShape, SectionOf, Text
from vally.spec.tags import FilterShape
from vally.text.globs import InvalidGlob, compile_glob
from vally.text.suggest import did_you_mean

FILE_NAME = ".vally.yaml"
OLD_FILE_NAME = ".vally.yml"
PLUGIN_KINDS: Mapping[str, str] = {
    "graders": "grader",
    "executors": "executor",
    "backends": "backend",
    "reporters": "reporter",
    "evalProviders": "eval-provider",
    "exporters": "exporter",
    "judges": "judge",
}
"""Keys of `plugins` and the kinds of plugin they load."""

_WORDS = ListOf(Text(), single="list")


class GlobsShape:
    """A path or glob, or a list of them."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        items = _WORDS.read(node, place, collector)
        if items is INVALID:
            return INVALID
        for pattern, at, where in items.placed(place):
            if paths.has_magic(pattern):
                try:
                    compile_glob(pattern, dotfiles=False)
                except InvalidGlob as error:
                    collector.add("invalid-glob", at, where, pattern=pattern, reason=error.reason)
        return items


PATHS = Table(
    "paths",
    {
        "skills": Key(GlobsShape(), "where to look for skills", default=["skills/"]),
        "evals": Key(GlobsShape(), "where to look for evals", default=["evals/"]),
        "results": Key(Text(), "parent of run directories"),
        "evalFilenames": Key(GlobsShape(), "base-name patterns", default=["eval.yaml", "eval.yml"]),
    },
)
SUITE = Table(
    "suite",
    {
        "description": Key(Text(blank=True), "free text"),
        "filter": Key(FilterShape(), "stimuli to keep, by tags"),
        "evals": Key(GlobsShape(), "files, directories and globs"),
        "metadata": Key(OpaqueMapping(), "handed to reporters"),
    },
)
PLUGINS = Table("plugins", {key: Key(_WORDS, f"plugin specifiers of {kind}s") for key, kind in PLUGIN_KINDS.items()})
BACKEND = Table(
    "backend",
    {
        "name": Key(Text(), "name or specifier", required=True),
        "args": Key(RawShape("backend-args"), "arguments of the backend"),
    },
)


PROJECT = Table(
    "project file",
    {
        "paths": Key(SectionOf(PATHS), "where things are"),
        "environments": Key(MapOf(RawShape("named-environment")), "environments by name"),
        "suites": Key(MapOf(RawShape("suite")), "selections by name"),
        "metadata": Key(OpaqueMapping(), "handed to reporters"),
        "plugins": Key(SectionOf(PLUGINS), "plugins to load"),
        "backend": Key(RawShape("backend"), "default backend"),
        "evalProvider": Key(Text(), "default eval provider"),
    },
    # They are reported together.
    unknown=lambda *_: None,
    open=True,
)


def load_project(path: str | Path) -> Project:
    """Read a project file; raises SpecError with all diagnostics when any of them is an error."""
    project = read_project(path)
    raise_errors(project.diagnostics)
    return project


def find_project(
    start: str | Path, cwd: str | Path, config_path: str | Path | None = None, no_config: bool = False
) -> Project:
    """The project of a start directory: its file as named or found upward, else the defaults with `cwd` as root.

    Never raises for what the file holds: look at `diagnostics`.
    """
    # Records name files by their place below the root, so it must be the same from wherever it is looked for.
    here = paths.absolute(Path.cwd(), str(cwd))
    if no_config:
        return Project(root=here)
    if config_path is not None:
        return read_project(here / config_path)
    found = next((path for base in (paths.absolute(here, str(start)), here) for path in _upward(base)), None)
    return Project(root=here) if found is None else read_project(found)


def _upward(start: Path) -> Iterator[Path]:
    """Project files from a directory upward; a directory that contains `.git` is the last one."""
    for directory in (start, *start.parents):
        for name in (FILE_NAME, OLD_FILE_NAME):
            if paths.is_file(directory / name):
                yield directory / name
        if paths.exists(directory / ".git"):
            return


def read_project(path: str | Path, *, content: bytes | None = None) -> Project:
    """Read a project file, or `content` in its place; what is wrong with it stands in `diagnostics`."""
    file = paths.absolute(Path.cwd(), str(path))
    source = Source(file.name, file, file.parent, content)
    collector = Collector()
    if file.name == OLD_FILE_NAME:
        collector.add("deprecated-filename", source, file=file.name)
    data = read_file(file, source, PROJECT_BYTES, collector, pipes=True)
    node = None if data is None else read_yaml(data, source, collector)
    values: dict[str, Any] = {}
    if node is not None and not collector.has_errors:
        section = read_section(node, PROJECT, Place(), collector)
        if section is not None:
            _report_unknown(section, collector)
            values = _values(section, collector)
    return Project(root=file.parent, path=file, **values, diagnostics=collector.ordered())


def _report_unknown(section: Section, collector: Collector) -> None:
    unknown = [key for key, _ in section.node.entries if key.text not in PROJECT.keys and not key.text.startswith("x-")]
    if unknown:
        hints = [did_you_mean(key.text, PROJECT.keys) for key in unknown]
        hint = "; ".join(hint for hint in hints if hint) or None
        names = "', '".join(key.text for key in unknown)
        collector.add("foreign-key", unknown[0], Place().key(unknown[0].text), hint=hint, key=names)


def _values(section: Section, collector: Collector) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if (where := section.get("paths")) is not None:
        for key, name in (("skills", "skills"), ("evals", "evals"), ("evalFilenames", "eval_filenames")):
            if key in where.values:
                values[name] = tuple(where.get(key))
        values["results"] = where.get("results")
    values["environments"] = _environments(section, collector)
    values["suites"] = _suites(section, collector)
    values["metadata"] = section.get("metadata", {})
    values["plugins"] = _plugins(section.get("plugins"))
    if "backend" in section.values:
        values.update(_backend(section.get("backend"), section.place.key("backend"), collector))
    values["eval_provider"] = section.get("evalProvider")
    values["positions"] = dict(_positions(section.node, ""))
    return values


def _positions(node: Node, pointer: str) -> Iterator[tuple[str, Position]]:
    """Where every value of the file stands, so that later findings can name the line."""
    yield pointer, Position(file=node.source.display, line=node.line, column=node.column)
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            yield from _positions(value, f"{pointer}/{escape(key.text)}")
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _positions(item, f"{pointer}/{index}")


def _environments(section: Section, collector: Collector) -> dict[str, NamedEnvironment]:
    """Environments with their placeholders; those that need a value are checked once a spec gives it."""
    named = {}
    for name, node in section.get("environments", {}).items():
        filled = Filler(Parameters(), Collector(muted=True)).fill(node, ENVIRONMENT_RULE)
        if isinstance(filled, MappingNode):
            check_named(filled, name, collector)
            named[name] = NamedEnvironment(name, node)
        else:
            wrong_type(filled, section.place.key("environments").key(name), collector, "a mapping")
    return named


def environment_params(project: Project) -> frozenset[str]:
    """Names of the parameters that the environments of a project mention."""
    nodes = [named.node for named in project.environments.values() if isinstance(named, NamedEnvironment)]
    return frozenset(name for node in nodes for name in mentioned_names(node))


def _suites(section: Section, collector: Collector) -> dict[str, Suite]:
    suites = {}
    for name, node in section.get("suites", {}).items():
        place = section.place.key("suites").key(name)
        suite = read_section(node, SUITE, place, collector)
        if suite is None:
            continue
        if "filter" not in suite.written and "evals" not in suite.written:
            collector.add("suite-empty", node, place, name=name)
        evals = suite.get("evals")
        suites[name] = Suite(
            name=name,
            description=suite.get("description"),
            filter=suite.get("filter", {}),
            evals=None if evals is None else tuple(evals),
            metadata=suite.get("metadata", {}),
        )
    return suites


def _plugins(section: Section | None) -> dict[str, tuple[str, ...]]:
    """Specifiers by key, each once."""
    if section is None:
        return {}
    return {key: tuple(dict.fromkeys(items)) for key, items in section.values.items()}


def _backend(node: Node, place: Place, collector: Collector) -> dict[str, Any]:
    if isinstance(node, ScalarNode):
        if not node.unresolved and not isinstance(scalar_value(node), str):
            hint = "name a backend, as in 'backend: sandbox'; its arguments go beside it: {name: …, args: {…}}"
            wrong_type(node, place, collector, "the name of a backend or a mapping", hint=hint)
            return {}
        name = Text().read(node, place, collector)
        return {} if name is INVALID else {"backend": name}
    section = read_section(node, BACKEND, place, collector)
    if section is None:
        return {}
    args = section.get("args")
    return {
        "backend": section.get("name"),
        "backend_args": {} if args is None else _backend_args(args, place.key("args"), collector),
    }


def _backend_args(node: Node, place: Place, collector: Collector) -> dict[str, str | list[str]]:
    if not isinstance(node, MappingNode):
        wrong_type(node, place, collector, "a mapping")
        return {}
    args: dict[str, str | list[str]] = {}
    for key, value in node.entries:
        where = place.key(key.text)
        if isinstance(value, ScalarNode):
            if not value.unresolved and not is_null(value) and not isinstance(scalar_value(value), str):
                wrong_type(value, where, collector, "a string", hint=f"write it in quotes: '{value.text}'")
                continue
            text = Text(blank=True).read(value, where, collector)
            if text is not INVALID:
                args[key.text] = text
            continue
        texts = ListOf(Text(blank=True), of="a string or a list of strings").read(value, where, collector)
        if texts is not INVALID:
            args[key.text] = list(texts)
    return args
