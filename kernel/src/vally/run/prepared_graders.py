"""Grader entries made ready once per run: record, parsed config, instance and default name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from vally.errors import ConfigInvalid, PluginError, VallyError
from vally.guard import guarded
from vally.model.config import needs_workspace, supports_view
from vally.run.calling import described
from vally.text.display import NAME_CLUSTERS, cut_clusters, sanitise

if TYPE_CHECKING:
    from pathlib import Path

    from vally.host import PluginHost
    from vally.model.evalspec import GraderEntry
    from vally.model.results import GraderResult
    from vally.records import GraderSpec


@dataclass(slots=True)
class PreparedEntry:
    """One grader entry with what the run needs of its plugin; `problem` replaces a grader that cannot work.

    `unusable` says that its plugin is to blame, not the entry.
    """

    entry: GraderEntry
    record: GraderSpec | None = None
    config: Any = None
    grader: Any = None
    default_name: str | None = None
    problem: str | None = None
    unusable: PluginError | None = None
    warnings: list[str] = field(default_factory=list)
    calling: Literal["here", "thread", "async"] = "here"
    """Where `grade` is called: in the thread of the event loop, in a worker thread, or as a coroutine."""
    needs_workspace: bool = False
    """Whether it runs in list order with others of its kind, because it may change the workspace."""

    @property
    def result_kind(self) -> str:
        """`kind` of its results when the grader itself does not say."""
        return "code" if self.record is None else self.record.kind

    def error(self, evidence: str, *, kind: str, message: str | None = None) -> GraderResult:
        """A result that says why there is no verdict."""
        from vally.model.results import GraderResult

        return GraderResult.error(
            evidence, kind=kind, message=message, name=self.entry.type, result_kind=self.result_kind
        )


def prepare_entries(
    host: PluginHost, entries: Sequence[GraderEntry], spec_dir: Path, on_warning: Callable[[str], None]
) -> list[PreparedEntry]:
    """Prepare entries, each at most once per host, because trials of one stimulus share them."""
    prepared = [host.memo(("prepared", id(entry)), partial(_prepare, host, entry, spec_dir)) for entry in entries]
    for item in prepared:
        for warning in item.warnings:
            on_warning(warning)
    return prepared


def _prepare(host: PluginHost, entry: GraderEntry, spec_dir: Path) -> PreparedEntry:
    prepared = PreparedEntry(entry=entry)
    try:
        record: Any = host.require("grader", entry.type)
        prepared.record = record
        if entry.problem is not None:
            raise ConfigInvalid(entry.type, [entry.problem])
        prepared.config = host.parse_config(record, entry.config, lenient=True, spec_dir=spec_dir)
        prepared.problem = _unsupported(record, entry, prepared.config)
        prepared.grader = host.create(record)
    except ConfigInvalid as error:
        prepared.problem = f"Invalid config for {entry.type}: {error.problems[0]}"
    except PluginError as error:
        prepared.problem, prepared.unusable = _advised(host, entry.type, error), error
    except VallyError as error:
        prepared.problem = f"Invalid config for {entry.type}: {error.message}"
    else:
        prepared.default_name = _default_name(prepared)
        prepared.calling = _calling(record, prepared.grader)
        prepared.needs_workspace = needs_workspace(record, prepared.config)
    return prepared


def _advised(host: PluginHost, keyword: str, error: PluginError) -> str:
    """The message, with what to write instead of a keyword that nobody provides."""
    if error.code != "unknown-grader-type":
        return error.message
    from vally.spec.grader_entries import unknown_type_hint

    hint = unknown_type_hint(host, keyword)
    return f"{error.message}; {hint}" if hint else error.message


def _calling(record: GraderSpec, grader: object) -> Literal["here", "thread", "async"]:
    methods = (getattr(grader, "grade", None), getattr(grader, "asserts_absence", None))
    if any(inspect.iscoroutinefunction(method) for method in methods):
        return "async"
    return "thread" if record.blocking else "here"


def _unsupported(record: GraderSpec, entry: GraderEntry, config: object) -> str | None:
    if entry.turn is not None and not supports_view(record, "turn", config):
        return f"Invalid config for {entry.type}: 'turn' is not supported"
    if entry.scope not in (None, "all") and not supports_view(record, "scope", config):
        return f"Invalid config for {entry.type}: 'scope' is not supported"
    return None


def _default_name(prepared: PreparedEntry) -> str | None:
    method = getattr(prepared.grader, "default_name", None)
    if method is None:
        return None
    keyword = prepared.entry.type
    value, error = guarded(partial(method, prepared.config))
    if error is not None:
        prepared.warnings.append(f"default_name of grader '{keyword}' failed: {described(error)}")
        return None
    if isinstance(value, str):
        return cut_clusters(sanitise(value), NAME_CLUSTERS) or None
    if inspect.iscoroutine(value):
        value.close()
    if value is not None:
        prepared.warnings.append(f"default_name of grader '{keyword}' returned {type(value).__name__}, not a string")
    return None
