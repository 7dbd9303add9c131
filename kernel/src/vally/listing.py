"""The rows of `vally plugins list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vally.catalog import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vally.catalog import Catalog
    from vally.discovery import PluginSource
    from vally.records import Record
    from vally.registry import Conflict, Registry

PROJECT_FILE = ".vally.yaml"
_ORIGINS = {"project": "project", "option": "command-line", "object": "object"}


class PluginInfo(NamedTuple):
    """One extension, or one plugin that gives none.

    `source` says in words where it comes from, `origin` is one of `built-in`, `installed`, `project`, `command-line`
    and `object`; `state` is `ok`, `failed`, `disabled`, `shadowed` or `conflict`, with `reason` beside all but the
    first; `target` is the import path, `trace` the traceback of a failure.
    """

    kind: str
    name: str
    version: str | None
    source: str
    origin: str
    state: str = "ok"
    reason: str | None = None
    description: str | None = None
    target: str = ""
    trace: str = ""

    @property
    def status(self) -> str:
        """The state and its reason as the list shows them."""
        if self.state == "ok":
            return f"ok ({PROJECT_FILE})" if self.origin == "project" else "ok"
        if self.state == "disabled":
            return "disabled"
        return {"failed": "failed: {}", "shadowed": "shadowed by {}", "conflict": "conflicts with {}"}[
            self.state
        ].format(self.reason)


def list_plugins(registry: Registry, catalog: Catalog) -> list[PluginInfo]:
    """Return the rows of one kind, sorted by name, then source."""
    rows = [*_active(registry, catalog), *_failed(registry, catalog), *_left_out(registry.kind, catalog)]
    for conflict in registry.conflicts.values():
        rows.extend(_conflicting(conflict, registry.kind, catalog))
    return sorted(rows, key=lambda row: (row.name, row.source))


def _active(registry: Registry, catalog: Catalog) -> Iterator[PluginInfo]:
    for name, record in registry.records.items():
        yield _described(_row(registry.kind, registry.providers[name], catalog), record)


def _conflicting(conflict: Conflict, kind: str, catalog: Catalog) -> Iterator[PluginInfo]:
    for source, record in conflict.providers:
        others = [other for other, _ in conflict.providers if other is not source]
        reason = " and ".join(_in_words(other, catalog) for other in others)
        yield _described(_row(kind, source, catalog), record)._replace(state="conflict", reason=reason)


def _in_words(source: PluginSource, catalog: Catalog) -> str:
    origin = catalog.origin(source)
    return origin if origin == BUILT_IN else source.title


def _failed(registry: Registry, catalog: Catalog) -> Iterator[PluginInfo]:
    for failure in registry.failures:
        row = _row(registry.kind, failure.source, catalog)
        yield row._replace(state="failed", reason=failure.reason, trace=failure.trace)
    for specifier, error in catalog.errors:
        if specifier.kind == registry.kind:
            origin = _ORIGINS[specifier.origin]
            reason = error.message.removeprefix(f"plugin '{specifier.text}': ")
            yield PluginInfo(registry.kind, specifier.text, None, specifier.text, origin, state="failed", reason=reason)


def _left_out(kind: str, catalog: Catalog) -> Iterator[PluginInfo]:
    for source in catalog.disabled:
        if source.kind == kind:
            yield _row(kind, source, catalog)._replace(state="disabled", reason="switched off")
    for source in catalog.shadowed:
        if source.kind == kind:
            yield _row(kind, source, catalog)._replace(state="shadowed", reason=catalog.shadowed_by(source))


def _row(kind: str, source: PluginSource, catalog: Catalog) -> PluginInfo:
    built_in = source.origin == "installed" and catalog.is_built_in(source)
    origin = "built-in" if built_in else _ORIGINS.get(source.origin, "installed")
    version = source.owner.version if source.owner else None
    target = str(source.file) if source.file else source.value
    return PluginInfo(kind, source.label, version, catalog.origin(source), origin, target=target)


def _described(row: PluginInfo, record: Record) -> PluginInfo:
    return row._replace(name=record.name, description=record.summary)
