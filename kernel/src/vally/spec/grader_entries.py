"""Entries of `graders:`: their fields, their config, and whether `turn` and `scope` are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from vally.errors import PluginError
from vally.model.config import supports_view
from vally.records import GraderSpec
from vally.spec.diagnostics import Collector, Place
from vally.spec.grader_configs import parse_config, read_config
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.plain_values import unreadable
from vally.spec.read_entry import ReadEntry
from vally.spec.scalars import is_null, scalar_value
from vally.spec.sections import INVALID, Key, Table, wrong_type
from vally.spec.shapes import BOOLEAN_HINT, Boolean, Integer, Number, RawShape, is_yes_no

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
ENTRY = Table(
    "grader",
    {
        "type": Key(RawShape("grader-type"), "what is checked", required=True),
        "config": Key(RawShape("grader-config"), "settings of the check"),
        "name": Key(RawShape("grader-name"), "name of this check in results and weights"),
        "turn": Key(Integer(0), "0-based turn that is looked at; default all"),
        "scope": Key(RawShape("grader-scope"), "whose events are looked at", default="all"),
        "required": Key(Boolean(), "the trial fails when this check does", default=False),
        "weight": Key(Number(), "weight of this check in the score"),
    },
)
_WANTED = {"turn": "an integer >= 0", "required": "true or false", "weight": "a number >= 0"}


def read_entries(loading: Loading, node: Node | None, place: Place) -> list[ReadEntry]:
    """The entries of one list."""
    if node is None:
        return []
    if not isinstance(node, SequenceNode):
        wrong_type(node, place, loading.collector, "a list")
        return []
    prefix = f"{place.context}, " if place.context else ""
    entries = []
    for index, item in loading.collector.until_full(enumerate(node.items)):
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
        read_config(loading, entry, node)
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
        known = ("unknown type", entry.type)
        if known not in loading.memo:
            loading.memo[known] = unknown_type_hint(loading.host, entry.type)
        loading.collector.add(
            "unknown-grader-type",
            entry.at("type"),
            entry.place.key("type"),
            hint=loading.memo[known],
            type=entry.type,
        )
        entry.valid = False
    return record


def unknown_type_hint(host: Any, keyword: str) -> str | None:
    """What to write instead of a keyword that nobody provides.

    A record's `hints` are wrong names it is meant by, or `name: text` with the words to show for that name.
    """
    records: Mapping[str, GraderSpec] = host.records("grader")
    meant = [record.name for record in records.values() if keyword in record.hints]
    texts = [
        text.strip()
        for record in records.values()
        for wrong, colon, text in (hint.partition(":") for hint in record.hints)
        if colon and wrong == keyword
    ]
    if meant and not texts:
        quoted = " or ".join(f"'{name}'" for name in meant)
        texts = [f"did you mean {quoted}?"]
    usual = host.unknown_hints("grader", keyword)
    return "; ".join([*texts, *(line for line in usual if not (texts and line.startswith("did you")))]) or None


def _read_fields(loading: Loading, entry: ReadEntry, node: MappingNode) -> None:
    for key, value in node.entries:
        if key.text in ("type", "config"):
            continue
        place = entry.place.key(key.text)
        if key.text not in ENTRY.keys:
            if not key.text.startswith("x-"):
                _unknown_field(loading, entry, key)
        elif is_null(value):
            continue
        elif isinstance(value, ScalarNode) and value.unresolved:
            entry.lose(unreadable(value, key.text))
        elif key.text == "name":
            _read_name(loading, entry, value, place)
        else:
            _read_field(loading, entry, key.text, value, place)


def _unknown_field(loading: Loading, entry: ReadEntry, key: ScalarNode) -> None:
    problem = f"unknown key '{key.text}'"
    hint = loading.collector.suggestion(key.text, ENTRY.keys)
    if key.text in _config_keys(loading, entry):
        problem, hint = f"{problem}, move it under config", None
    entry.report(loading.collector, problem, key, entry.place.key(key.text), hint=hint)


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
        entry.report(loading.collector, "'name' must be a string", value, place)
    elif not name.strip():
        entry.report(loading.collector, "'name' must not be blank", value, place)
    else:
        entry.name = name
        if not SLUG.fullmatch(name):
            loading.collector.add("deprecated-grader-name", value, place, name=name)


def _read_field(loading: Loading, entry: ReadEntry, key: str, node: Node, place: Place) -> None:
    if key == "scope":
        entry.scope = _scope(loading, entry, node, place)
        return
    value = ENTRY.keys[key].shape.read(node, place, Collector(muted=True))
    if value is not INVALID:
        setattr(entry, key, value)
    elif key == "required" and is_yes_no(node):
        wrong_type(node, place.named("required"), loading.collector, "true or false", hint=BOOLEAN_HINT)
        entry.lose("'required' must be true or false")
    else:
        entry.refuse(loading.collector, f"'{key}' must be {_WANTED[key]}", node, place)


def _scope(loading: Loading, entry: ReadEntry, node: Node, place: Place) -> str | Mapping[str, object] | None:
    if isinstance(node, ScalarNode):
        text = scalar_value(node)
        if isinstance(text, str) and text.strip():
            return text
    if isinstance(node, MappingNode):
        keys = [key for key, _ in node.entries if not key.text.startswith("x-")]
        unknown = next((key for key in keys if key.text != "agent"), None)
        if unknown is not None:
            entry.refuse(
                loading.collector, f"unknown key '{unknown.text}' in 'scope'", unknown, place.key(unknown.text)
            )
            return None
        agents = node.get("agent")
        names = agents.items if isinstance(agents, SequenceNode) else [agents]
        texts = [scalar_value(item) if isinstance(item, ScalarNode) else None for item in names]
        if texts and all(isinstance(text, str) and text.strip() for text in texts):
            return {"agent": texts if isinstance(agents, SequenceNode) else texts[0]}
    wanted = "'scope' must be all, main, subagents, an agent name or {agent: name or list of names}"
    entry.refuse(loading.collector, wanted, node, place)
    return None


def _check_support(loading: Loading, entry: ReadEntry) -> None:
    record = entry.record
    assert record is not None
    written: dict[Literal["turn", "scope"], Any] = {"turn": entry.turn, "scope": entry.scope}
    for key, value in written.items():
        if value is not None and value != "all" and not supports_view(record, key, entry.parsed):
            entry.report(loading.collector, f"'{key}' is not supported", entry.at(key), entry.place.key(key))


def check_turns(loading: Loading, entry: ReadEntry, turns: int, place: Place) -> None:
    """Report an entry whose `turn` a stimulus does not have."""
    if entry.turn is not None and entry.turn >= turns:
        count = "1 turn" if turns == 1 else f"{turns} turns"
        problem = f"'turn' must be less than {turns}, the stimulus has {count}"
        entry.report(loading.collector, problem, entry.at("turn"), place)
