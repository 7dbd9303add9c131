"""`defaults` of a spec: trials, limits, models, the executor and the endpoint of judges."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vally.errors import ConfigInvalid, PluginError, VallyError
from vally.guard import reason_of
from vally.model.evalspec import (
    DEFAULT_EXECUTOR,
    DEFAULT_JUDGE_MODEL,
    Defaults,
    ExecutorChoice,
    Position,
    ProviderConfig,
)
from vally.spec.diagnostics import Collector, Place
from vally.spec.git_sources import check_url
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode
from vally.spec.plain_values import read_plain
from vally.spec.positions import problem_key, problem_node
from vally.spec.scalars import is_null, scalar_value
from vally.spec.sections import INVALID, Key, Section, Table, read_section, wrong_type, wrong_value
from vally.spec.shapes import (
    Choice,
    DurationShape,
    Integer,
    MapOf,
    OpaqueMapping,
    RawShape,
    Text,
    any_of,
)
from vally.text.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

PROVIDER_FAMILIES = ("openai", "azure", "anthropic")
"""Wire families that every provider shape knows; judge plugins may serve others."""
_SECRET_KEYS = frozenset({"apiKey", "token", "bearerToken", "password"})
_SECRET_HEADERS = re.compile(r"authorization|api-key|x-api-key|.*token|.*secret", re.IGNORECASE)
_SECRET_HINT = "use apiKeyEnv or bearerTokenEnv"
_VARIABLE = Text(pattern=r"[A-Za-z_][A-Za-z0-9_]*", expected="the name of an environment variable")

DEFAULTS = Table(
    "defaults",
    {
        "runs": Key(Integer(0, 1000), "trials per stimulus", default=1),
        "timeout": Key(DurationShape(), "limit of the agent part of a trial", default="2m"),
        "max_agent_duration": Key(DurationShape(), "soft limit handed to the executor"),
        "model": Key(Text(), "agent model"),
        "reasoning_effort": Key(Text(), "effort of the agent model"),
        "judge_model": Key(Text(), "model of graders without a model of their own", default=DEFAULT_JUDGE_MODEL),
        "judge_reasoning_effort": Key(Text(), "effort of judges"),
        "judge_provider": Key(RawShape("provider"), "endpoint of judges"),
        "executor": Key(RawShape("executor"), "what runs the agent", nullable=True, default=DEFAULT_EXECUTOR),
    },
)
EXECUTOR = Table(
    "defaults.executor",
    {
        "name": Key(Text(), "name of the executor", required=True),
        "config": Key(RawShape("mapping"), "its config"),
    },
)
PROVIDER_KEYS = {
    "type": Key(Text(), "wire family", required=True),
    "baseUrl": Key(Text(), "http or https URL without credentials"),
    "apiKeyEnv": Key(_VARIABLE, "variable that holds the key"),
    "bearerTokenEnv": Key(_VARIABLE, "variable that holds a bearer token"),
    "apiVersion": Key(Text(), "version of the API"),
    "model": Key(Text(), "model name on the wire"),
    "headers": Key(MapOf(Text(blank=True)), "extra request headers"),
    "wireApi": Key(Choice(("completions", "responses")), "kind of request", default="completions"),
    "answer": Key(Choice(("tool", "schema")), "how a judge must answer", default="tool"),
}


def read_defaults(loading: Loading, section: Section | None) -> Defaults:
    """The defaults, with executor and provider checked as far as their plugins are installed."""
    if section is None:
        return Defaults()
    values: dict[str, Any] = {}
    for key, value in section.values.items():
        if key in ("timeout", "max_agent_duration"):
            values[f"{key}_ms"] = value.ms
        elif key == "executor":
            values[key] = read_executor(loading, value, section.place.key(key))
        elif key == "judge_provider":
            values[key] = read_provider(loading, value, section.place.key(key))
        else:
            values[key] = value
    return Defaults(**values)


def read_executor(loading: Loading, node: Node, place: Place) -> ExecutorChoice | None:
    """An executor by name, or by name and config, checked when it is installed."""
    collector = loading.collector
    if isinstance(node, ScalarNode):
        if node.unresolved:
            return None
        name = scalar_value(node)
        if not isinstance(name, str) or not name.strip():
            collector.add("invalid-executor", node, place)
            return None
        return _checked(loading, ExecutorChoice(name=name), node, place)
    if not isinstance(node, MappingNode):
        collector.add("invalid-executor", node, place)
        return None
    named = node.get("name")
    if is_null(named) or (isinstance(named, ScalarNode) and not named.unresolved and not named.text.strip()):
        at = place if named is None else place.key("name")
        collector.add("invalid-executor", named or node, at)
        return None
    section = read_section(node, EXECUTOR, place, collector)
    if section is None or "name" not in section.values:
        return None
    config = {}
    config_node = section.written.get("config")
    if config_node is not None:
        config = OpaqueMapping().read(config_node, place.key("config"), collector)
        if config is INVALID or has_secrets(config_node, place.key("config"), collector):
            return ExecutorChoice(name=section.get("name"))
    return _checked(loading, ExecutorChoice(name=section.get("name"), config=config), node, place)


def _checked(loading: Loading, choice: ExecutorChoice, node: Node, place: Place) -> ExecutorChoice:
    check_executor(loading, choice, node, place)
    return replace(choice, position=Position(file=node.source.display, line=node.line, column=node.column))


def has_secrets(node: Node, place: Place, collector: Collector) -> bool:
    """Report literal keys and tokens in a provider, or in a config and its provider."""
    found = list(_secrets(node, place))
    for secret, where in found:
        collector.add("secret-in-spec", secret, where, hint=_SECRET_HINT, key=where.label)
    return bool(found)


def _secrets(node: Node, place: Place) -> Iterator[tuple[Node, Place]]:
    if not isinstance(node, MappingNode):
        return
    for key, value in node.entries:
        where = place.key(key.text)
        if key.text == "headers" and isinstance(value, MappingNode):
            yield from (
                (item, where.key(name.text))
                for name, item in value.entries
                if _SECRET_HEADERS.fullmatch(name.text) and _is_literal(item)
            )
        elif key.text in _SECRET_KEYS and _is_literal(value):
            yield value, where
        elif key.text == "provider":
            yield from _secrets(value, where)


def _is_literal(node: Node) -> bool:
    """Whether the file itself holds the text, and not a placeholder."""
    if not isinstance(node, ScalarNode) or not node.text or is_null(node):
        return False
    return node.original is None and not node.unresolved


def check_executor(loading: Loading, choice: ExecutorChoice, node: Node, place: Place) -> None:
    """Check the config of an installed executor; the name itself is checked when a run starts."""
    record = loading.host.get("executor", choice.name)
    if record is None:
        return
    config_node = node.get("config") if isinstance(node, MappingNode) else None
    at = config_node or node
    place = place.key("config") if config_node is not None else place
    try:
        loading.host.parse_config(record, choice.config)
        check = getattr(loading.host.create(record), "validate_config", None)
        if check is not None:
            answer = check(choice.config)
            if inspect.iscoroutine(answer):
                answer.close()
                raise TypeError("validate_config must not be async")
    except ConfigInvalid as error:
        for problem in error.problems:
            found, pointer = problem_node(at, place, problem)
            _add(loading, choice, found, pointer, problem, hint=error.suggestions.get(problem))
    except PluginError as error:
        loading.collector.add("plugin-load-failed", at, place, name=choice.name, reason=error.message)
    except VallyError as error:
        _add(loading, choice, at, place, error.message)
    except SystemExit as error:
        _add(loading, choice, at, place, reason_of(error))
    except Exception as error:  # a plugin may raise anything
        _add(loading, choice, at, place, str(error) or type(error).__name__)


def _add(
    loading: Loading, choice: ExecutorChoice, at: Node, place: Place, reason: str, *, hint: str | None = None
) -> None:
    reason = loading.parameters.redacted(reason)
    loading.collector.add("invalid-executor-config", at, place, hint=hint, name=choice.name, reason=reason)


def read_provider(loading: Loading, node: Node, place: Place) -> ProviderConfig | None:
    """The endpoint of judges."""
    collector = loading.collector
    if not isinstance(node, MappingNode):
        wrong_type(node, place, collector, "a mapping")
        return None
    extra: dict[str, Entry] = {}

    def keep(_table: Table, entry: Entry, _place: Place, _collector: Collector) -> None:
        extra[entry.key.text] = entry

    secret = has_secrets(node, place, collector)
    section = read_section(node, Table("judge_provider", PROVIDER_KEYS, keep), place, collector)
    if section is None or "type" not in section.values:
        return None
    served = _judge(loading, section.get("type"))
    if served is None and section.get("type") not in PROVIDER_FAMILIES:
        _report_unserved(loading, section)
        return None
    options = _options(loading, section, extra, served)
    _check_provider(section, place, collector)
    if options is None or secret or section.is_broken(*section.keys):
        return None
    return ProviderConfig(
        type=section.get("type"),
        base_url=section.get("baseUrl"),
        api_key_env=section.get("apiKeyEnv"),
        bearer_token_env=section.get("bearerTokenEnv"),
        api_version=section.get("apiVersion"),
        model=section.get("model"),
        headers=section.get("headers", {}),
        wire_api=section.get("wireApi", "completions"),
        answer=section.get("answer", "tool"),
        options=options,
    )


def _report_unserved(loading: Loading, section: Section) -> None:
    known = tuple(dict.fromkeys((*PROVIDER_FAMILIES, *sorted(_served(loading)))))
    hint = did_you_mean(section.get("type"), known)
    wrong_value(section.at("type"), section.place.key("type"), loading.collector, any_of(known), hint=hint)


def _check_provider(section: Section, place: Place, collector: Collector) -> None:
    if section.get("type") in PROVIDER_FAMILIES and "baseUrl" not in section.written:
        collector.add("missing-key", section.node, place.key("baseUrl"), where=f"{place.label}: ", key="baseUrl")
    if "baseUrl" in section.values and not check_url(
        section.at("baseUrl"), section.get("baseUrl"), place.key("baseUrl"), collector
    ):
        del section.values["baseUrl"]
    if "apiKeyEnv" in section.values and "bearerTokenEnv" in section.values:
        expected = "only one of apiKeyEnv and bearerTokenEnv"
        wrong_value(section.at("bearerTokenEnv"), place.key("bearerTokenEnv"), collector, expected)


def _served(loading: Loading) -> dict[str, Any]:
    records: Any = loading.host.records("judge")
    return {kind: record for record in records.values() for kind in record.provider_types}


def _judge(loading: Loading, kind: str) -> Any:
    """The judge plugin that serves a provider type; the wire families need none to be installed."""
    return None if kind in PROVIDER_FAMILIES else _served(loading).get(kind)


def _options(loading: Loading, section: Section, extra: dict[str, Entry], record: Any) -> Any:
    """Keys beyond the provider shape: the plugin that serves the type checks them, else they are unknown."""
    collector, place = loading.collector, section.place
    options = {}
    for name, (key, value) in extra.items():
        if name in _SECRET_KEYS:
            if not _is_literal(value):
                collector.add("unknown-key", key, place.key(name), hint=_SECRET_HINT, key=name, where=place.label)
        elif record is None or record.config is None:
            hint = did_you_mean(name, PROVIDER_KEYS)
            collector.add("unknown-key", key, place.key(name), hint=hint, key=name, where=place.label)
        else:
            options[name] = read_plain(value, place.key(name), collector)
    if INVALID in options.values():
        return None
    if record is not None and record.config is not None:
        try:
            parsed = loading.host.parse_config(record, options, spec_dir=section.node.source.base)
            # With paths that do not depend on where the program runs.
            return parsed.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except ConfigInvalid as error:
            for problem in error.problems:
                at, where = problem_node(section.node, place, problem)
                hint = error.suggestions.get(problem)
                if problem.startswith("unknown key "):
                    collector.add("unknown-key", at, where, hint=hint, key=problem_key(problem), where=place.label)
                else:
                    wrong_value(at, where, collector, f"a value that judge '{record.name}' takes ({problem})")
            return None
        except PluginError as error:
            collector.add("plugin-load-failed", section.node, place, name=record.name, reason=error.message)
            return None
    return options
