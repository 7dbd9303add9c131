"""Taking records out of what a plugin's module holds: hooks through pluggy, plain records, a register function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from vally import hookspecs
from vally.guard import Rejected
from vally.record_facts import CHECKED_CONSTRAINTS, fact_problems
from vally.records import KINDS, NAME_PATTERN, Capabilities, Record, ReporterOption

if TYPE_CHECKING:
    from vally.discovery import PluginSource

HOOKS = frozenset(kind.hook for kind in KINDS.values())
KERNEL_COMMANDS = frozenset({"eval", "grade", "plugins", "help"})


class HookCaller:
    """One pluggy manager: validates each plugin when it is registered and calls the hook of one plugin at a time."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT_NAME)
        self._manager.add_hookspecs(hookspecs)

    def hooks_of(self, plugin: object) -> frozenset[str]:
        """Names of the hooks that `plugin` implements; registers it at first sight. Raises `Rejected`."""
        hooks = _implemented(self._manager, plugin)
        for name, options in hooks.items():
            if name not in HOOKS and not options.get("optionalhook"):
                raise Rejected(_unknown_hook(name))
        if hooks:
            self._register(plugin)
        return frozenset(hooks)

    def _register(self, plugin: object) -> None:
        if self._manager.is_registered(plugin):
            return
        try:
            self._manager.register(plugin, name=f"{getattr(plugin, '__name__', 'object')}#{id(plugin)}")
        except pluggy.PluginValidationError as error:
            lines = str(error).splitlines()
            raise Rejected(f"{lines[-1]} ({lines[1].removeprefix('hookimpl definition: ')})") from None

    def call(self, hook: str, plugin: object) -> list[Any]:
        """Call one hook of one plugin; returns the list of its results (empty when it returned None)."""
        others = [other for other in self._manager.get_plugins() if other is not plugin]
        return list(self._manager.subset_hook_caller(hook, others)())


def _implemented(manager: pluggy.PluginManager, plugin: object) -> dict[str, Mapping[str, Any]]:
    # A record or a register function is no namespace of hooks; a class is called before its methods are looked at.
    if isinstance(plugin, Record | list | tuple | type) or inspect.isroutine(plugin):
        return {}
    options = {name: manager.parse_hookimpl_opts(plugin, name) for name in dir(plugin)}
    return {str(found.get("specname") or name): found for name, found in options.items() if found is not None}


def provided_kinds(target: object) -> list[str]:
    """The kinds of which `target`, a module or an object, has hooks or records; calls nothing."""
    hooks = _implemented(pluggy.PluginManager(hookspecs.PROJECT_NAME), target)
    return [kind.name for kind in KINDS.values() if kind.hook in hooks or _plain_records(kind.name, target)]


def _unknown_hook(name: str) -> str:
    from vally.text.suggest import did_you_mean

    hint = did_you_mean(name, HOOKS)
    return f"unknown hook '{name}'" + (f", {hint}" if hint else "")


def take_records(caller: HookCaller, source: PluginSource, target: object) -> list[Record]:
    """Return the records of the source's kind that `target` provides, checked, in definition order.

    `target` is a module, a record, an object with hook implementations, or a callable without arguments whose result
    is treated likewise. Raises `Rejected`; whatever the plugin itself raises passes through.
    """
    records = _taken(caller, source.kind, target, call=True)
    if records is None or (not records and source.explicit):
        others = _other_kinds(caller, source.kind, target)
        raise Rejected(f"provides no {source.kind}{others}{_unmarked(source.kind, target)}")
    _check(source.kind, records)
    return records


def _taken(caller: HookCaller, kind: str, target: object, *, call: bool) -> list[Record] | None:
    hook = KINDS[kind].hook
    if hook in caller.hooks_of(target):
        return _from_hook(kind, caller.call(hook, target))
    plain = _plain_records(kind, target)
    if plain:
        return plain
    if call and not isinstance(target, ModuleType | Record) and callable(target):
        return _taken(caller, kind, _called(target), call=False)
    return None


def _called(function: Callable[[], object]) -> object:
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return None
    result = function()
    return list(result) if isinstance(result, Iterable) and not isinstance(result, str | Mapping) else result


def _from_hook(kind: str, results: list[Any]) -> list[Record]:
    hook = KINDS[kind].hook
    if not results:
        raise Rejected(f"{hook} returned None, not an iterable of {KINDS[kind].record.__name__}")
    records: list[Record] = []
    for result in results:
        if inspect.iscoroutine(result):
            result.close()
        if not isinstance(result, Iterable):
            raise Rejected(f"{hook} returned {type(result).__name__}, not an iterable of {KINDS[kind].record.__name__}")
        records.extend(result)
    return records


def _plain_records(kind: str, target: object) -> list[Record]:
    wanted = KINDS[kind].record
    if isinstance(target, Record):
        return [target] if isinstance(target, wanted) else []
    if isinstance(target, ModuleType):
        named = [value for name, value in vars(target).items() if not name.startswith("_")]
        records = [value for value in named if isinstance(value, wanted)]
        return list({id(record): record for record in records}.values())
    if isinstance(target, list | tuple):
        return [value for value in target if isinstance(value, wanted) or not isinstance(value, Record)]
    return []


def _other_kinds(caller: HookCaller, kind: str, target: object) -> str:
    hooks = caller.hooks_of(target)
    others = [
        other.name
        for other in KINDS.values()
        if other.name != kind and (other.hook in hooks or _plain_records(other.name, target))
    ]
    return f", only {' and '.join(others)}" if others else ""


def _unmarked(kind: str, target: object) -> str:
    hook = KINDS[kind].hook
    return f"; '{hook}' is not marked with @hookimpl" if inspect.isroutine(getattr(target, hook, None)) else ""


def _check(kind: str, records: list[Any]) -> None:
    wanted = KINDS[kind].record
    seen: set[str] = set()
    for record in records:
        if not isinstance(record, wanted):
            raise Rejected(f"{type(record).__name__} is not a {wanted.__name__}")
        for problem in _problems(record):
            raise Rejected(problem)
        if record.name in seen:
            raise Rejected(f"provides {kind} '{record.name}' twice")
        if kind == "command" and record.name in KERNEL_COMMANDS:
            raise Rejected(f"the command name '{record.name}' belongs to the kernel")
        seen.add(record.name)


def _problems(record: Any) -> Iterable[str]:
    """Yield what is wrong with a record by the rules of the plugin chapter; nothing when it is fine."""
    if not isinstance(record.name, str) or not NAME_PATTERN.fullmatch(record.name):
        yield f"name {record.name!r} must match ^[a-z0-9][a-z0-9-]{{0,59}}$"
    if not isinstance(record.summary, str) or not record.summary.strip() or "\n" in record.summary:
        yield f"summary of '{record.name}' must be one non-empty line"
    elif len(record.summary) > 100 or record.summary.endswith("."):
        yield f"summary of '{record.name}' must have at most 100 characters and no final full stop"
    if not callable(record.factory) and not (isinstance(record.factory, str) and ":" in record.factory):
        yield f"factory of '{record.name}' must be callable or 'package.module:attribute'"
    yield from fact_problems(record)
    for option in getattr(record, "options", ()):
        if not isinstance(option, ReporterOption) or not NAME_PATTERN.fullmatch(option.name):
            yield f"options of '{record.name}' must be ReporterOption with a name such as 'no-colour'"
    for capability in getattr(record, "enabled_by", ()):
        if capability not in Capabilities.__dataclass_fields__:
            yield f"enabled_by of '{record.name}': there is no capability '{capability}'"
    for key in getattr(record, "constraints", ()):
        if key not in CHECKED_CONSTRAINTS:
            known = ", ".join(CHECKED_CONSTRAINTS)
            yield f"constraints of '{record.name}': there is no constraint '{key}', only {known}"
