"""What a host may load: the sources of all kinds, collected and replaced before anything is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vally import discovery
from vally.discovery import PluginSource, normalised
from vally.errors import PluginError
from vally.records import KINDS, Record

if TYPE_CHECKING:
    from vally.host import PluginSources
    from vally.specifiers import Specifier

BUILT_IN = "built in"
"""The origin of what the meta-distribution requires."""


class Catalog:
    """The sources of every kind, sorted, with explicit ones after installed ones and duplicates merged.

    `disabled` and `shadowed` are installed sources that are left out; `errors` are specifiers that mean nothing;
    `warnings` are about how specifiers were read.
    """

    def __init__(self, sources: PluginSources) -> None:
        self._built_in: frozenset[str] | None = None
        found = discovery.installed_sources() if sources.installed else ()
        named_off = {normalised(name) for name in sources.no_plugin}
        self._left_out = tuple(source for source in found if _owner_key(source) in named_off)
        self._usable = tuple(source for source in found if _owner_key(source) not in named_off)
        self.errors: list[tuple[Specifier, PluginError]] = []
        owners = sorted({key for source in found if (key := _owner_key(source))})
        self.warnings = [_unknown(name, owners) for name in sources.no_plugin if normalised(name) not in owners]
        third_party = [source for source in self._usable if sources.no_plugins and not self.is_built_in(source)]
        explicit = self._explicit(sources)
        rest, self._shadows = discovery.replace_shadowed(self._usable, explicit)
        self.shadowed = tuple(source for source in self._usable if source not in rest)
        loadable = tuple(source for source in rest if source not in third_party)
        self._merged = discovery.merge_sources((*loadable, *explicit))
        loaded = {(source.kind, source.value) for source in self._merged}
        self.disabled = tuple(
            source
            for source in (*self._left_out, *third_party)
            if (source.kind, source.value) not in loaded and source not in self.shadowed
        )

    def sources(self, kind: str) -> tuple[PluginSource, ...]:
        """The sources to load for a kind, in order."""
        return tuple(source for source in self._merged if source.kind == kind)

    def resolve(self, specifier: Specifier) -> tuple[PluginSource, ...]:
        """Return what a specifier means; raises `PluginError`."""
        from vally.specifiers import resolve

        resolution = resolve(specifier, self._usable, self._left_out)
        self.warnings.extend(resolution.warnings)
        return resolution.sources

    def shadowed_by(self, source: PluginSource) -> str:
        """The path, as written, that takes the place of an installed source."""
        return self._shadows[_owner_key(source)]

    def is_built_in(self, source: PluginSource) -> bool:
        """Whether the installed meta-distribution requires the distribution of a source."""
        if self._built_in is None:
            self._built_in = discovery.built_in_distributions()
        return source.path is None and _owner_key(source) in self._built_in

    def origin(self, source: PluginSource) -> str:
        """Where a source comes from, in words."""
        if source.origin == "object":
            return "object"
        if source.owner is None or source.path is not None:
            return source.label
        return BUILT_IN if self.is_built_in(source) else f"entry point {source.owner.name}"

    def _explicit(self, sources: PluginSources) -> list[PluginSource]:
        found = [source for item in sources.objects for source in _object_sources(item)]
        for specifier in dict.fromkeys(_written(sources)):
            try:
                found.extend(self.resolve(specifier))
            except PluginError as error:
                self.errors.append((specifier, error))
        return found


def _written(sources: PluginSources) -> list[Specifier]:
    if not (sources.project or sources.command_line):
        return []
    from vally.specifiers import Specifier

    written = [Specifier(kind, text, "project", (base,)) for kind, text, base in sources.project]
    return written + [Specifier(kind, text, "option", sources.bases) for kind, text in sources.command_line]


def _unknown(name: str, owners: list[str]) -> str:
    from vally.text.suggest import did_you_mean

    near = did_you_mean(normalised(name), owners)
    told = f"--no-plugin {name}: no installed distribution of that name provides plugins"
    return f"{told}; {near}" if near else told


def _owner_key(source: PluginSource) -> str:
    return normalised(source.owner.name) if source.owner else ""


def _object_sources(item: object) -> list[PluginSource]:
    # A record has one kind; a module or an object with hooks is asked for the kinds it provides.
    from vally.taking import provided_kinds

    kinds = [kind.name for kind in KINDS.values() if isinstance(item, kind.record)]
    label = item.name if isinstance(item, Record) else getattr(item, "__name__", type(item).__name__)
    kinds = kinds or provided_kinds(item)
    if not kinds:
        raise PluginError(f"object '{label}' has neither records nor hooks of a plugin")
    return [PluginSource(kind, str(label), str(label), origin="object", target=item) for kind in kinds]
