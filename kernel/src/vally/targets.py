"""What records refer to, imported when it is first needed: factories, functions and config models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.errors import PluginError
from vally.guard import guarded, import_string, reason_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from vally.host import PluginHost
    from vally.records import CommandSpec, Record


_METHODS: Mapping[str, tuple[str, ...]] = {
    "grader": ("grade",),
    "executor": ("execute", "shutdown"),
    "backend": ("prepare", "run_trial", "grade_trial", "shutdown"),
    "judge": ("configure", "judge", "shutdown"),
    "exporter": ("export",),
    "eval-provider": ("detect", "load"),
}
"""What the object of a kind must have; that it has not should be known before an agent has run."""


class Targets:
    """Imports what the records of one host refer to; every `PluginError` names the record and its distribution."""

    def __init__(self, host: PluginHost) -> None:
        self._host = host
        self._models: dict[int, tuple[Record, type[BaseModel]]] = {}

    def create(self, record: Record) -> Any:
        """What the factory of a record makes."""
        factory = self._resolve(record, record.factory, "factory")
        if not callable(factory):
            raise self._unusable(record, record.factory, "is not callable")
        if hasattr(factory, "make_context"):
            # Calling a click command would run it with the arguments of this program.
            raise self._unusable(record, record.factory, "is a click command, not a function that returns one")
        instance, error = guarded(factory)
        if error is not None:
            raise self._unusable(record, record.factory, reason_of(error)) from error
        kind, _ = self._host.key(record)
        wanted = (*_METHODS.get(kind, ()), *(("compare",) if getattr(record, "comparable", False) else ()))
        missing = [f"'{name}'" for name in wanted if not callable(getattr(instance, name, None))]
        if missing:
            raise self._unusable(record, record.factory, f"what it makes has no method {' and no '.join(missing)}")
        return instance

    def function(self, record: CommandSpec) -> Any:
        """What programs call in place of a command."""
        if not callable(found := self._resolve(record, record.function, "function")):
            raise self._unusable(record, record.function, "cannot be called by programs")
        return found

    def config_model(self, record: Record) -> type[BaseModel]:
        """The model of a record that takes a config, the same whenever it is asked for."""
        # The record is kept beside its model, so that its identity stays its own.
        known = self._models.get(id(record))
        if known is None:
            known = self._models[id(record)] = (record, self._import_model(record))
        return known[1]

    def _import_model(self, record: Record) -> Any:
        from vally.model.config import config_model_problem

        model = self._resolve(record, record.config, "config")
        problem = config_model_problem(model)
        if problem is not None:
            raise self._unusable(record, record.config, problem)
        return model

    def _resolve(self, record: Record, target: object, what: str) -> Any:
        if not isinstance(target, str):
            return target
        found, error = guarded(import_string, target)
        if error is not None:
            raise self._unusable(record, target, f"{what} cannot be imported: {reason_of(error)}") from error
        return found

    def _unusable(self, record: Record, target: object, problem: str) -> PluginError:
        kind, name = self._host.key(record)
        source = self._host.source_of(record)
        owner = f" of {source.title}" if source is not None else ""
        shown = target if isinstance(target, str) else getattr(target, "__qualname__", type(target).__name__)
        return PluginError(f"{kind} '{name}'{owner}: {shown}: {problem}", code="plugin-load-failed")
