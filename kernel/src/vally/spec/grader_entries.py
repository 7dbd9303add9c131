"""Entries of `graders:`: their fields, their config, and whether `turn` and `scope` are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally.errors import ConfigInvalid, PluginError
from vally.model.evalspec import GraderEntry, Position
from vally.records import GraderSpec
from vally.spec.diagnostics import Place, suggestion
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.positions import problem_key, problem_node
from vally.spec.scalars import describe, is_null, scalar_value
from vally.spec.sections import INVALID, wrong_type
from vally.spec.shapes import BOOLEAN_HINT, is_yes_no, read_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
FIELDS = ("type", "config", "name", "turn", "scope", "required", "weight")
SCOPES = ("all", "main", "subagents")
_ANY_TEXT = frozenset({".", ".+", ".*", r"\S", r"\S+", r"[\s\S]*", r"[\s\S]+"})
_FLAG_PREFIX = re.compile(r"\(\?[a-z]+\)")


@dataclass(slots=True)
class ReadEntry:
    """One entry as written. `parsed` is the validated config; `valid` tells that nothing was wrong with it."""

    node: Node
    place: Place
    type: str
    record: GraderSpec | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    parsed: Any = None
    name: str | None = None
    turn: int | None = None
    scope: str | Mapping[str, object] | None = None
    required: bool = False
    weight: float | None = None
    constraint: str | None = None
    valid: bool = True

    def at(self, key: str) -> Node:
        """Where to report something about a field."""
        return (self.node.get(key) if isinstance(self.node, MappingNode) else None) or self.node

    @property
    def evidence(self) -> frozenset[str]:
        """What the entry reads beside the trajectory."""
        evidence = getattr(self.parsed, "evidence", None)
        return frozenset(evidence()) if callable(evidence) else frozenset()

    @property
    def is_judge(self) -> bool:
        """Whether a judge decides."""
        return self.record is not None and (self.record.requires_judge or self.record.kind == "llm")

    def finished(self) -> GraderEntry:
        """The entry as the run uses it."""
        node = self.node
        return GraderEntry(
            type=self.type,
            config=self.config,
            name=self.name,
            turn=self.turn,
            scope=self.scope,
            required=self.required,
            weight=self.weight,
            constraint=self.constraint,
            position=Position(file=node.source.display, line=node.line, column=node.column),
            pointer=self.place.pointer,
        )


def read_entries(loading: Loading, node: Node | None, place: Place) -> list[ReadEntry]:
    """The entries of one list."""
    if node is None:
        return []
    if not isinstance(node, SequenceNode):
        wrong_type(node, place, loading.collector, "a list")
        return []
    prefix = f"{place.context}, " if place.context else ""
    entries = []
    for index, item in enumerate(node.items):
        context = f"{prefix}grader {index + 1}"
        entry = _read_entry(loading, item, place.item(index).named("grader", context))
        if entry is not None:
            entries.append(entry)
    return entries


def _read_entry(loading: Loading, node: Node, place: Place) -> ReadEntry | None:
    collector = loading.collector
    if not isinstance(node, MappingNode):
        wrong_type(node, place, collector, "a mapping")
        return None
    kind = node.get("type")
    if is_null(kind):
        collector.add("missing-key", node, place.key("type"), where="", key="type")
        return None
    assert kind is not None
    keyword = scalar_value(kind) if isinstance(kind, ScalarNode) and not kind.unresolved else None
    if not isinstance(keyword, str):
        wrong_type(kind, place.key("type").named("type"), collector, "a string")
        return None
    entry = ReadEntry(node, place, keyword)
    entry.record = _record(loading, entry)
    _read_fields(loading, entry, node)
    if entry.record is not None:
        _read_config(loading, entry, node)
        _check_support(loading, entry)
    return entry


def recheck(loading: Loading, entry: ReadEntry) -> None:
    """Check an entry that was read before against the plugins of this load."""
    entry.record = _record(loading, entry)
    if entry.record is not None:
        parse_config(loading, entry, entry.node, entry.place)
        _check_support(loading, entry)


def _record(loading: Loading, entry: ReadEntry) -> GraderSpec | None:
    """The record of the keyword, or None after `unknown-grader-type`."""
    records: Any = loading.host.records("grader")
    record: GraderSpec | None = records.get(entry.type)
    if record is None:
        hint = unknown_type_hint(loading.host, entry.type)
        loading.collector.add(
            "unknown-grader-type", entry.at("type"), entry.place.key("type"), hint=hint, type=entry.type
        )
        entry.valid = False
    return record


def unknown_type_hint(host: Any, keyword: str) -> str | None:
    """What to write instead of a keyword that nobody provides: records name the wrong names they are meant by."""
    records: Mapping[str, GraderSpec] = host.records("grader")
    meant = [record.name for record in records.values() if keyword in record.hints]
    quoted = " or ".join(f"'{name}'" for name in meant)
    lines = [f"did you mean {quoted}?"] if meant else []
    lines += [line for line in host.unknown_hints("grader", keyword) if not (meant and line.startswith("did you"))]
    return "; ".join(lines) or None


def _problem(loading: Loading, entry: ReadEntry, problem: str, at: Node, place: Place) -> None:
    loading.collector.add("invalid-grader-config", at, place, type=entry.type, problem=problem)
    entry.valid = False


def _read_fields(loading: Loading, entry: ReadEntry, node: MappingNode) -> None:
    for key, value in node.entries:
        place = entry.place.key(key.text)
        if key.text not in FIELDS:
            if not key.text.startswith("x-"):
                _unknown_field(loading, entry, key)
        elif is_null(value) or (isinstance(value, ScalarNode) and value.unresolved):
            continue
        elif key.text == "name":
            _read_name(loading, entry, value, place)
        elif key.text not in ("type", "config"):
            _read_field(loading, entry, key.text, value, place)


def _unknown_field(loading: Loading, entry: ReadEntry, key: ScalarNode) -> None:
    problem = f"unknown key '{key.text}'"
    hint = suggestion(key.text, FIELDS)
    if key.text in _config_keys(loading, entry):
        problem, hint = f"{problem}, move it under config", None
    loading.collector.add(
        "invalid-grader-config", key, entry.place.key(key.text), hint=hint, type=entry.type, problem=problem
    )
    entry.valid = False


def _config_keys(loading: Loading, entry: ReadEntry) -> set[str]:
    if entry.record is None:
        return set()
    try:
        model = loading.host.config_model(entry.record)
    except PluginError:
        return set()
    fields = model.model_fields if model is not None else {}
    return {info.alias or name for name, info in fields.items()}


def _read_name(loading: Loading, entry: ReadEntry, value: Node, place: Place) -> None:
    name = scalar_value(value) if isinstance(value, ScalarNode) else None
    if not isinstance(name, str):
        _problem(loading, entry, "'name' must be a string", value, place)
    elif not name.strip():
        _problem(loading, entry, "'name' must not be blank", value, place)
    else:
        entry.name = name
        if not SLUG.fullmatch(name):
            loading.collector.add("deprecated-grader-name", value, place, name=name)


def _read_field(loading: Loading, entry: ReadEntry, key: str, node: Node, place: Place) -> None:
    value = scalar_value(node) if isinstance(node, ScalarNode) else None
    if key == "turn":
        if type(value) is int and value >= 0:
            entry.turn = value
        else:
            _problem(loading, entry, "'turn' must be an integer >= 0", node, place)
    elif key == "required":
        if isinstance(value, bool):
            entry.required = value
        elif is_yes_no(node):
            wrong_type(node, place.named("required"), loading.collector, "true or false", hint=BOOLEAN_HINT)
        else:
            _problem(loading, entry, "'required' must be true or false", node, place)
    elif key == "weight":
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
            entry.weight = float(value)
        else:
            _problem(loading, entry, "'weight' must be a number >= 0", node, place)
    else:
        entry.scope = _scope(loading, entry, node, place)


def _scope(loading: Loading, entry: ReadEntry, node: Node, place: Place) -> str | Mapping[str, object] | None:
    if isinstance(node, ScalarNode):
        text = scalar_value(node)
        if isinstance(text, str) and text.strip():
            return text
    if isinstance(node, MappingNode):
        keys = [key for key, _ in node.entries if not key.text.startswith("x-")]
        unknown = next((key for key in keys if key.text != "agent"), None)
        if unknown is not None:
            _problem(loading, entry, f"unknown key '{unknown.text}' in 'scope'", unknown, place.key(unknown.text))
            return None
        agents = node.get("agent")
        names = agents.items if isinstance(agents, SequenceNode) else [agents]
        texts = [scalar_value(item) if isinstance(item, ScalarNode) else None for item in names]
        if texts and all(isinstance(text, str) and text.strip() for text in texts):
            return {"agent": texts if isinstance(agents, SequenceNode) else texts[0]}
    wanted = "'scope' must be all, main, subagents, an agent name or {agent: name or list of names}"
    _problem(loading, entry, wanted, node, place)
    return None


def _read_config(loading: Loading, entry: ReadEntry, node: MappingNode) -> None:
    config = node.get("config")
    place = entry.place.key("config").named("config")
    if config is None or is_null(config):
        # Keys beside the entry's own are none of the config's.
        parse_config(loading, entry, MappingNode(node.source, node.line, node.column, []), entry.place)
        return
    if isinstance(config, ScalarNode) and config.unresolved:
        entry.valid = False
        return
    if not isinstance(config, MappingNode):
        _problem(loading, entry, f"'config' must be a mapping, got {describe(config)}", config, place)
        return
    values = read_plain(config, place, loading.collector)
    if values is INVALID:
        entry.valid = False
        return
    entry.config = values
    parse_config(loading, entry, config, place)
    for text in _suspicious(config):
        loading.collector.add("suspicious-pattern", text[0], place, text=text[1])


def parse_config(loading: Loading, entry: ReadEntry, at: Node, place: Place) -> None:
    """Validate the config of an entry by its plugin; problems become diagnostics at the keys they name."""
    assert entry.record is not None
    try:
        entry.parsed = loading.host.parse_config(entry.record, entry.config)
    except ConfigInvalid as error:
        entry.valid = False
        for problem in error.problems:
            found, where = problem_node(at, place, problem)
            if problem.endswith("must be true or false") and is_yes_no(found):
                key = where.named(problem_key(problem) or "")
                wrong_type(found, key, loading.collector, "true or false", hint=BOOLEAN_HINT)
            else:
                _problem(loading, entry, problem, found, where)
    except PluginError as error:
        entry.valid = False
        loading.collector.add(
            "plugin-load-failed", entry.at("type"), entry.place, name=entry.type, reason=error.message
        )
    else:
        _report_deprecated(loading, entry, at, place)


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


def _suspicious(config: MappingNode) -> Iterator[tuple[ScalarNode, str]]:
    for key, value in config.entries:
        if key.text != "pattern" or not isinstance(value, ScalarNode):
            continue
        if _FLAG_PREFIX.sub("", value.text, count=1) in _ANY_TEXT:
            yield value, f"pattern '{value.text}' matches any text"
        if value.style == "'" and "\\\\" in value.text:
            yield value, r"'\\' in single quotes is two characters"


def _check_support(loading: Loading, entry: ReadEntry) -> None:
    record = entry.record
    assert record is not None
    # A judge that reads the diff of the whole run cannot be narrowed.
    whole = record.requires_judge and not entry.evidence.isdisjoint({"diff", "turn-diff"})
    for key, supported in (("turn", record.supports_turn), ("scope", record.supports_scope)):
        written = entry.turn if key == "turn" else entry.scope
        if written is not None and written != "all" and (whole or not supported):
            _problem(loading, entry, f"'{key}' is not supported", entry.at(key), entry.place.key(key))


def check_turns(loading: Loading, entry: ReadEntry, turns: int, place: Place) -> None:
    """Report an entry whose `turn` a stimulus does not have."""
    if entry.turn is not None and entry.turn >= turns:
        count = "1 turn" if turns == 1 else f"{turns} turns"
        problem = f"'turn' must be less than {turns}, the stimulus has {count}"
        loading.collector.add("invalid-grader-config", entry.at("turn"), place, type=entry.type, problem=problem)
        entry.valid = False
