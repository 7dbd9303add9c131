"""The records of one kind by name: loaded, checked, and cleared of conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vally._version import __version__
from vally.errors import PluginError
from vally.guard import guarded, reason_of, trace_of
from vally.loading import api_problem, requirement_problem
from vally.taking import take_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vally.catalog import Catalog
    from vally.discovery import PluginSource
    from vally.host import PluginHost
    from vally.records import Record


class PluginFailure(NamedTuple):
    """A plugin that could not be loaded: one line why, the traceback, and hint lines."""

    source: PluginSource
    reason: str
    trace: str = ""
    hints: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Entry-point name, or the specifier as written."""
        return self.source.label


class Conflict(NamedTuple):
    """A name with two providers: the error for using it, and the warning for not using it."""

    providers: tuple[tuple[PluginSource, Record], ...]
    error: PluginError
    warning: str


class Registry:
    """What became of the sources of one kind.

    `records` are the active ones, sorted by name; `providers` their sources; `failures` the plugins that could not be
    loaded; `conflicts` the names with several providers; `errors` what makes the kind unusable.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.records: dict[str, Record] = {}
        self.providers: dict[str, PluginSource] = {}
        self.conflicts: dict[str, Conflict] = {}
        self.failures: tuple[PluginFailure, ...] = ()
        self.errors: list[PluginError] = []
        self._found: list[tuple[PluginSource, Record]] = []

    def load(self, host: PluginHost, catalog: Catalog) -> None:
        """Load all sources of this kind."""
        self.errors.extend(error for specifier, error in catalog.errors if specifier.kind == self.kind)
        self._take(host, catalog.sources(self.kind))
        self._settle()
        host.warn(*(conflict.warning for conflict in self.conflicts.values() if conflict.error not in self.errors))

    def add_explicit(self, host: PluginHost, sources: Sequence[PluginSource]) -> list[str]:
        """Load further sources that a user named; returns the names they provide. Raises `PluginError`."""
        wanted = {source.identity for source in sources}
        for failure in self.failures:
            if failure.source.identity in wanted:
                from vally.specifiers import load_failed

                raise load_failed(sources[0].label, failure.reason, failure.hints)
        known = {source.identity for source, _ in self._found}
        self._take(host, [source for source in sources if source.identity not in known])
        if not self.errors:
            self._settle()
        if self.errors:
            raise self.errors[0]
        return sorted(record.name for source, record in self._found if source.identity in wanted)

    def _take(self, host: PluginHost, sources: Sequence[PluginSource]) -> None:
        for source, (target, error) in zip(sources, host.import_sources(self.kind, sources), strict=True):
            failure = None if error is None else _failure(source, _import_reason(source, error), error)
            if failure is None and (problem := api_problem(source, __version__)):
                failure = _failure(source, problem)
            if failure is None:
                records, error = guarded(take_records, host.hook_caller(), source, target)
                failure = None if error is None else _failure(source, reason_of(error), error)
                self._found.extend((source, record) for record in records or ())
            if failure is not None:
                self._remember(host, failure)

    def _remember(self, host: PluginHost, failure: PluginFailure) -> None:
        self.failures += (failure,)
        source = failure.source
        if source.explicit:
            from vally.specifiers import load_failed

            self.errors.append(load_failed(source.label, failure.reason, failure.hints))
        else:
            host.warn(f"plugin '{source.label}' of {source.title} cannot be used: {failure.reason}")

    def _settle(self) -> None:
        self.records, self.providers, self.conflicts = {}, {}, {}
        by_name: dict[str, list[tuple[PluginSource, Record]]] = {}
        for source, record in sorted(self._found, key=lambda pair: pair[1].name):
            by_name.setdefault(record.name, []).append((source, record))
        for name, everything in by_name.items():
            found = _handed_over(everything) or everything
            if len(found) == 1:
                self.providers[name], self.records[name] = found[0]
            else:
                self._add_conflict(name, found)

    def _add_conflict(self, name: str, found: list[tuple[PluginSource, Record]]) -> None:
        titles = list(dict.fromkeys(source.title for source, _ in found))
        if len(titles) == 1:
            titles = [f"{source.title} ({source.value})" for source, _ in found]
        message = f"{self.kind} '{name}' is provided by {' and '.join(titles)}"
        hints = removal_hints(source for source, _ in found)
        error = PluginError(message, code="plugin-conflict", hints=hints)
        warning = f"{message}; it is not available" + (f", {hints[0]}" if hints else "")
        self.conflicts[name] = Conflict(tuple(found), error, warning)
        if any(source.explicit for source, _ in found):
            self.errors.append(error)


def _handed_over(found: list[tuple[PluginSource, Record]]) -> list[tuple[PluginSource, Record]]:
    """Those that the calling program handed over, which replace installed ones; empty where others were named."""
    if any(source.origin not in ("object", "installed") for source, _ in found):
        return []
    return [pair for pair in found if pair[0].origin == "object"]


def removal_hints(sources: Iterable[PluginSource]) -> list[str]:
    """The line that says how one of several installed plugins is left out; none when no option does it."""
    options = list(dict.fromkeys(_option(source) for source in sources if _removable(source)))
    return [f"leave one out with {' or '.join(options)}"] if options else []


def _removable(source: PluginSource) -> bool:
    return source.origin == "installed" and source.owner is not None


def _option(source: PluginSource) -> str:
    return f"--no-plugin {source.owner.name if source.owner else source.label}"


def _import_reason(source: PluginSource, error: BaseException) -> str:
    # What was written for another kernel often fails to import; that it needs another one says more.
    return requirement_problem(source, __version__) or reason_of(error)


def _failure(source: PluginSource, reason: str, error: BaseException | None = None) -> PluginFailure:
    hints: tuple[str, ...] = ()
    if isinstance(error, ModuleNotFoundError) and source.path is not None and source.import_root is not None:
        hints = (f"pip install -e {source.label}",)
    return PluginFailure(source, reason, trace_of(error) if error is not None else "", hints)
