"""PluginHost: finds, loads and keeps plugins of every kind, each kind when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from vally.errors import PluginError
from vally.records import KINDS, Record

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from vally.catalog import Catalog
    from vally.discovery import PluginSource
    from vally.listing import PluginInfo
    from vally.records import CommandSpec, GraderSpec
    from vally.registry import PluginFailure, Registry
    from vally.taking import HookCaller
    from vally.targets import Targets

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSources:
    """Where plugins come from.

    `project` has (kind, specifier, directory that local paths start from), `command_line` (kind, specifier) in the
    order given; `bases` are the directories that local paths of the command line start from, in order. `no_plugins`
    leaves out installed third parties, `no_plugin` installed distributions by name. `objects` are records, modules
    or objects with hook implementations.
    """

    installed: bool = True
    no_plugins: bool = False
    no_plugin: tuple[str, ...] = ()
    project: tuple[tuple[str, str, Path], ...] = ()
    command_line: tuple[tuple[str, str], ...] = ()
    bases: tuple[Path, ...] = ()
    objects: tuple[object, ...] = ()


class PluginHost:
    """The plugins that one run or one test may use; `sources` says where they come from.

    Nothing is imported before a kind is asked for. A plugin that a user named and that fails, or that provides the
    name of another one, makes every use of its kind raise `PluginError`; an installed one becomes a warning.
    """

    def __init__(self, *, sources: PluginSources | None = None) -> None:
        self.sources = PluginSources() if sources is None else sources
        self._catalog_: Catalog | None = None
        self._caller_: HookCaller | None = None
        self._registries: dict[str, Registry] = {}
        self._imports: dict[object, tuple[Any, BaseException | None]] = {}
        self._memo: dict[object, Any] = {}
        self._targets_: Targets | None = None
        self._warned: set[str] = set()
        self._warnings: list[str] = []

    @classmethod
    def from_objects(
        cls, *objects: object, specifiers: Sequence[tuple[str, str]] = (), bases: Sequence[Path] = ()
    ) -> PluginHost:
        """A host of given records, modules or objects with hooks, without any installed plugin."""
        return cls(
            sources=PluginSources(installed=False, objects=objects, command_line=tuple(specifiers), bases=tuple(bases))
        )

    def records(self, kind: str) -> Mapping[str, Record]:
        """The active records of a kind by name, sorted. Raises the first of `problems(kind)`."""
        registry = self._registry(kind)
        if registry.errors:
            raise registry.errors[0]
        return registry.records

    def get(self, kind: str, name: str) -> Record | None:
        """The active record of that name, or None."""
        return self.records(kind).get(name)

    def require(self, kind: str, name: str) -> Record:
        """The active record of that name.

        Raises `PluginError` that lists near matches and the plugins that failed, or both providers of a conflict.
        """
        record = self.get(kind, name)
        if record is not None:
            return record
        if (conflict := self.conflict(kind, name)) is not None:
            raise conflict
        hints = self.unknown_hints(kind, name)
        if kind == "grader":
            raise PluginError(f"unknown grader type '{name}'", code="unknown-grader-type", hints=hints)
        raise PluginError(f"no {kind} named '{name}'", code=f"unknown-{kind}", hints=hints)

    def conflict(self, kind: str, name: str) -> PluginError | None:
        """The error of using a name that several plugins provide, or None; ends its warning."""
        conflict = self._registry(kind).conflicts.get(name)
        if conflict is None:
            return None
        self._forget_warning(conflict.warning)
        return conflict.error

    def contested(self, kind: str) -> Iterator[Record]:
        """The records whose names several plugins provide, so that none of them can be used."""
        for conflict in self._registry(kind).conflicts.values():
            yield from (record for _, record in conflict.providers)

    def unknown_hints(self, kind: str, name: str, *, candidates: Iterable[str] | None = None) -> tuple[str, ...]:
        """Hint lines: the providers when there are several, else near matches or all names, then failed plugins."""
        from vally.lookups import unknown_hints

        return unknown_hints(self, kind, name, candidates)

    def resolve_one(self, kind: str, text: str, *, bases: Sequence[Path] | None = None) -> Record:
        """The one record that a name or specifier means, e.g. the value of `--backend`; loads a specifier.

        `bases` are the directories that local paths start from, by default those of the command line. Raises
        `PluginError`, also when a specifier provides several records.
        """
        from vally.specifiers import Specifier, refuse_javascript

        refuse_javascript(text)
        registry = self._registry(kind)
        if text in self.records(kind) or text in registry.conflicts:
            return self.require(kind, text)
        specifier = Specifier(kind, text, "option", tuple(self.sources.bases if bases is None else bases))
        sources = self._resolve_specifier(specifier)
        names = registry.add_explicit(self, sources)
        if len(names) != 1:
            raise PluginError(
                f"plugin '{text}': must provide exactly one {kind}, it provides {', '.join(names)}",
                code="plugin-load-failed",
            )
        return self.require(kind, names[0])

    def _resolve_specifier(self, specifier: Any) -> tuple[PluginSource, ...]:
        from vally.specifiers import is_path

        try:
            return self._catalog().resolve(specifier)
        except PluginError as error:
            if is_path(specifier.text) or "no entry point" not in error.message:
                raise
            hints = self.unknown_hints(specifier.kind, specifier.text)
            raise PluginError(error.message, code=error.code, hints=hints) from None

    def create(self, record: Record) -> Any:
        """Call the factory of a record, importing it when it is a string; the caller keeps the object.

        Raises `PluginError` with code `plugin-load-failed` when it cannot be imported or raises.
        """
        return self._targets().create(record)

    def function(self, record: CommandSpec) -> Any:
        """What programs call in place of a command, imported at first use; raises `PluginError`."""
        return self._targets().function(record)

    def config_model(self, record: Record) -> type[BaseModel] | None:
        """The pydantic model of a record's config, imported at first use; None when it takes no config."""
        return None if record.config is None else self._targets().config_model(record)

    def parse_config(
        self,
        record: Record,
        mapping: Mapping[str, object] | None,
        *,
        lenient: bool = False,
        spec_dir: Path | None = None,
    ) -> Any:
        """Validate a config mapping; returns the model instance, or `{}` for a record without model.

        `lenient` lets invalid patterns through, so that they become verdicts. Files that the config names are read
        when the directory of the eval is given. Raises `ConfigInvalid`.
        """
        from vally.model.config import parse_config

        return parse_config(record.name, self.config_model(record), mapping, lenient=lenient, spec_dir=spec_dir)

    def memo(self, key: object, make: Callable[[], T]) -> T:
        """The value made for `key` at first use; it lives as long as this host."""
        if key not in self._memo:
            self._memo[key] = make()
        value: T = self._memo[key]
        return value

    def constraint_provider(self, key: str) -> GraderSpec | None:
        """The grader that implements a constraint such as `max_turns`; raises `PluginError` when there are two.

        Two graders, or one name that two plugins provide.
        """
        from vally.lookups import constraint_provider

        return constraint_provider(self, key)

    def problems(self, kinds: Iterable[str] | None = None) -> tuple[PluginError, ...]:
        """Load kinds and return what makes them unusable: failures and conflicts of plugins that a user named.

        Without `kinds` those are loaded of which a user named any.
        """
        named = {kind for kind, *_ in (*self.sources.project, *self.sources.command_line)}
        wanted = [kind for kind in KINDS if kind in named] if kinds is None else kinds
        found = [error for kind in wanted for error in self._registry(kind).errors]
        return tuple({error.message: error for error in found}.values())

    def failures(self, kind: str) -> tuple[PluginFailure, ...]:
        """The plugins of a kind that could not be loaded, in the order in which they were found."""
        return self._registry(kind).failures

    def warnings(self) -> list[str]:
        """One-line warnings gathered so far."""
        return list(self._warnings)

    def take_warnings(self) -> list[str]:
        """Return the warnings gathered so far and forget them; each is given out once."""
        taken, self._warnings = self._warnings, []
        return taken

    def specifier_warnings(self) -> tuple[str, ...]:
        """Those of the warnings that are about options and specifiers, not about what was loaded."""
        return tuple(self._catalog().warnings)

    def listing(self, kinds: Sequence[str] | None = None) -> tuple[PluginInfo, ...]:
        """Everything known of the given kinds (all by default), failed, conflicting and left-out plugins included."""
        from vally.listing import list_plugins

        wanted = [kind for kind in KINDS if kinds is None or kind in kinds]
        return tuple(info for kind in wanted for info in list_plugins(self._registry(kind), self._catalog()))

    def origin(self, record: Record) -> str:
        """Where a record comes from, in words: `built in`, `entry point acme-graders`, `./x.py`."""
        source = self.source_of(record)
        return "object" if source is None else self._catalog().origin(source)

    def version(self, record: Record) -> str | None:
        """Version of the distribution that a record comes from, when known."""
        source = self.source_of(record)
        return source.owner.version if source is not None and source.owner is not None else None

    def rank(self, record: Record) -> int:
        """Position in the order in which plugins were found: installed ones, then project, then command line."""
        source = self.source_of(record)
        sources = self._catalog().sources(self.key(record)[0])
        return next((index for index, other in enumerate(sources) if other == source), len(sources))

    def source_of(self, record: Record) -> PluginSource | None:
        """The source of an active record, or None."""
        kind, name = self.key(record)
        return self._registry(kind).providers.get(name)

    def _registry(self, kind: str) -> Registry:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of plugin '{kind}', expected one of {', '.join(KINDS)}")
        if kind not in self._registries:
            from vally.registry import Registry

            self._registries[kind] = registry = Registry(kind)
            registry.load(self, self._catalog())
        return self._registries[kind]

    def _catalog(self) -> Catalog:
        if self._catalog_ is None:
            from vally.catalog import Catalog

            self._catalog_ = Catalog(self.sources)
            self.warn(*self._catalog_.warnings)
        return self._catalog_

    def _targets(self) -> Targets:
        if self._targets_ is None:
            from vally.targets import Targets

            self._targets_ = Targets(self)
        return self._targets_

    def import_sources(self, kind: str, sources: Sequence[PluginSource]) -> list[tuple[Any, BaseException | None]]:
        """Import sources, each module once per host; returns (module or attribute, error) in order."""
        from vally.loading import load

        new = [source for source in sources if source.target is None and source.identity not in self._imports]
        for source, result in zip(new, load(kind, new) if new else (), strict=True):
            self._imports[source.identity] = (result.target, result.error)
        return [
            (source.target, None) if source.target is not None else self._imports[source.identity] for source in sources
        ]

    def hook_caller(self) -> HookCaller:
        """The pluggy manager of this host."""
        if self._caller_ is None:
            from vally.taking import HookCaller

            self._caller_ = HookCaller()
        return self._caller_

    def warn(self, *lines: str) -> None:
        """Remember warnings, each text once."""
        for line in lines:
            if line not in self._warned:
                self._warned.add(line)
                self._warnings.append(line)

    def _forget_warning(self, line: str) -> None:
        if line in self._warnings:
            self._warnings.remove(line)

    def key(self, record: Record) -> tuple[str, str]:
        """Kind and name of a record."""
        kind = next(kind.name for kind in KINDS.values() if isinstance(record, kind.record))
        return kind, record.name
