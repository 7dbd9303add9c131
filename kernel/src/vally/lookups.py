"""What is found in the plugins of a host, and what is said when nothing is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from vally.errors import PluginError

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.records import GraderSpec, Record


def unknown_hints(host: PluginHost, kind: str, name: str, candidates: Iterable[str] | None) -> tuple[str, ...]:
    """See `PluginHost.unknown_hints`."""
    from vally.discovery import install_hint
    from vally.text.suggest import did_you_mean

    if (conflict := host.conflict(kind, name)) is not None:
        return (conflict.message, *conflict.hints)
    names = list(host.records(kind) if candidates is None else candidates)
    hints = [hint for hint in (install_hint(kind, name), did_you_mean(name, names)) if hint]
    if kind != "grader" and names:
        hints.append(f"{kind}s: {', '.join(sorted(names))}")
    failed = ", ".join(f"{failure.label} ({failure.reason})" for failure in host.failures(kind))
    return (*hints, f"failed plugins: {failed}") if failed else tuple(hints)


def constraint_provider(host: PluginHost, key: str) -> GraderSpec | None:
    """See `PluginHost.constraint_provider`."""
    graders: Any = host.records("grader").values()
    providers: list[GraderSpec] = [record for record in graders if key in record.constraints]
    if len(providers) > 1:
        raise contested_fact(host, f"constraint '{key}' is implemented by graders", providers)
    if providers:
        return providers[0]
    contested: Any = host.contested("grader")
    name = next((record.name for record in contested if key in record.constraints), None)
    if name is not None and (conflict := host.conflict("grader", name)) is not None:
        raise conflict
    return None


def contested_fact(host: PluginHost, what: str, records: Iterable[Record]) -> PluginError:
    """The error of several records that claim what only one may have; `what` is the beginning of its sentence."""
    from vally.registry import removal_hints

    found = [(record, source) for record in records if (source := host.source_of(record)) is not None]
    names = " and ".join(f"'{record.name}' of {source.title}" for record, source in found)
    return PluginError(f"{what} {names}", code="plugin-conflict", hints=removal_hints(source for _, source in found))
