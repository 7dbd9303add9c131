"""The `config` of grader entries, checked by the plugins that they belong to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vally.errors import ConfigInvalid, PluginError
from vally.model.config import config_fact_problem
from vally.spec.diagnostics import Place
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.plain_values import read_plain, unreadable
from vally.spec.positions import problem_key, problem_node
from vally.spec.read_entry import ReadEntry
from vally.spec.scalars import describe, is_null
from vally.spec.sections import INVALID, wrong_type
from vally.spec.shapes import BOOLEAN_HINT, is_yes_no

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANY_TEXT = frozenset({".", ".+", ".*", r"\S", r"\S+", r"[\s\S]*", r"[\s\S]+"})
_FLAG_PREFIX = re.compile(r"\(\?[a-z]+\)")


def read_config(loading: Loading, entry: ReadEntry, node: MappingNode) -> None:
    """Read and check the `config` of an entry."""
    config = node.get("config")
    place = entry.place.key("config").named("config")
    if config is None or is_null(config):
        # Keys beside the entry's own are none of the config's.
        parse_config(loading, entry, MappingNode(node.source, node.line, node.column, []), entry.place)
        return
    if isinstance(config, ScalarNode) and config.unresolved:
        entry.lose(unreadable(config, "config"))
        return
    if not isinstance(config, MappingNode):
        entry.refuse(loading.collector, f"'config' must be a mapping, got {describe(config)}", config, place)
        return
    values = read_plain(config, place, loading.collector)
    if values is INVALID:
        entry.lose(unreadable(config, ""))
        return
    entry.config = values
    parse_config(loading, entry, config, place)
    for text in _suspicious(config):
        loading.collector.add("suspicious-pattern", text[0], place, text=text[1])


def parse_config(loading: Loading, entry: ReadEntry, at: Node, place: Place) -> None:
    """Validate the config of an entry by its plugin; problems become diagnostics at the keys they name."""
    assert entry.record is not None
    try:
        entry.parsed = loading.host.parse_config(entry.record, entry.config, spec_dir=loading.source.base)
    except ConfigInvalid as error:
        entry.valid = False
        for problem in error.problems:
            found, where = problem_node(at, place, problem)
            if problem.endswith("must be true or false") and is_yes_no(found):
                key = where.named(problem_key(problem) or "")
                wrong_type(found, key, loading.collector, "true or false", hint=BOOLEAN_HINT)
            else:
                entry.report(loading.collector, problem, found, where, hint=error.suggestions.get(problem))
    except PluginError as error:
        _report_plugin(loading, entry, error.message)
    else:
        if (reason := config_fact_problem(entry.parsed)) is not None:
            _report_plugin(loading, entry, reason)
        _report_deprecated(loading, entry, at, place)
        _report_suspicious(loading, entry, at, place)


def _report_plugin(loading: Loading, entry: ReadEntry, reason: str) -> None:
    entry.valid = False
    loading.collector.add("plugin-load-failed", entry.at("type"), entry.place, name=entry.type, reason=reason)


def _report_deprecated(loading: Loading, entry: ReadEntry, at: Node, place: Place) -> None:
    """Keys that the config model marks as deprecated and that the entry sets."""
    fields = getattr(type(entry.parsed), "model_fields", {})
    for name in sorted(getattr(entry.parsed, "model_fields_set", ())):
        info = fields.get(name)
        if info is not None and info.deprecated:
            key = info.alias or name
            node = (at.key(key) if isinstance(at, MappingNode) else None) or at
            hint = info.deprecated if isinstance(info.deprecated, str) else None
            loading.collector.add("deprecated-grader-config", node, place.key(key), hint=hint, type=entry.type, key=key)


def _report_suspicious(loading: Loading, entry: ReadEntry, at: Node, place: Place) -> None:
    """What the config itself warns of: legal, but hardly meant."""
    for problem in entry.warnings:
        found, where = problem_node(at, place, problem)
        loading.collector.add("suspicious-grader-config", found, where, type=entry.type, problem=problem)


def _suspicious(config: MappingNode) -> Iterator[tuple[ScalarNode, str]]:
    for key, value in config.entries:
        if key.text != "pattern" or not isinstance(value, ScalarNode):
            continue
        if _FLAG_PREFIX.sub("", value.text, count=1) in _ANY_TEXT:
            yield value, f"pattern '{value.text}' matches any text"
        if value.style == "'" and "\\\\" in value.text:
            yield value, r"'\\' in single quotes is two characters"
