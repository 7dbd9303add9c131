"""Reading mappings by tables of keys: each key has a shape that reads its value and reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode
from vally.spec.scalars import describe, is_null


class _Invalid:
    def __repr__(self) -> str:
        return "INVALID"


INVALID: Final[Any] = _Invalid()
"""What a shape reads from a value that it reported; later checks leave such values alone."""


class Shape(Protocol):
    """Reads a node that is not null; returns its value, or INVALID after a diagnostic."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any: ...


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a mapping; `nullable` means that null has a meaning of its own, `default` is what readers assume."""

    shape: Shape
    doc: str = ""
    required: bool = False
    nullable: bool = False
    default: object = None
    deprecated: bool = False


Unknown = Callable[["Table", Entry, Place, Collector], None]


def unknown_key(table: Table, entry: Entry, place: Place, collector: Collector) -> None:
    """The usual diagnostic about a key that a table does not have."""
    key = entry.key
    where = place.label or table.title
    hint = collector.suggestion(key.text, table.keys)
    collector.add("unknown-key", key, place.key(key.text), hint=hint, key=key.text, where=where)


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of one kind of mapping.

    `ignored` are older keys without effect and what to use instead, `renamed` older names of keys. In an `open` table
    unknown keys are no errors, apart from the `misplaced` ones, which belong elsewhere.
    """

    title: str
    keys: Mapping[str, Key]
    unknown: Unknown = unknown_key
    missing: str = "missing-key"
    ignored: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    open: bool = False
    misplaced: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", tuple(name for name, key in self.keys.items() if key.required))


@dataclass(slots=True)
class Section:
    """A mapping read by a table. `values` has the valid ones, `written` the nodes of all keys that are not null."""

    node: MappingNode
    place: Place
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, ScalarNode] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default when it is absent or invalid."""
        return self.values.get(key, default)

    def at(self, key: str) -> Node:
        """Where to report something about a key: its value, or this mapping."""
        return self.written.get(key, self.node)

    def is_broken(self, *keys: str) -> bool:
        """Whether any of the keys has a value that was reported as wrong."""
        return any(key in self.written and key not in self.values for key in keys)


@dataclass(frozen=True, slots=True)
class Items(Sequence[Any]):
    """The values of a list with their nodes; items that were wrong are left out.

    `numbers` are those of the items in the file, None where one text stands for the list.
    """

    values: tuple[Any, ...] = ()
    nodes: tuple[Node, ...] = ()
    numbers: tuple[int | None, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def placed(self, place: Place) -> Iterator[tuple[Any, Node, Place]]:
        """Values with their nodes, and where they stand in the list whose place is given."""
        for number, value, node in zip(self.numbers, self.values, self.nodes, strict=True):
            yield value, node, place if number is None else place.item(number)


def read_section(node: Node, table: Table, place: Place, collector: Collector) -> Section | None:
    """Read a mapping by its table; None after a diagnostic when it is no mapping."""
    if not isinstance(node, MappingNode):
        wrong_type(node, place, collector, "a mapping", title=table.title)
        return None
    section = Section(node, place)
    for key, value in node.entries:
        name = key.text
        known = table.keys.get(name)
        if known is None:
            if not name.startswith("x-"):
                table.unknown(table, Entry(key, value), place, collector)
            continue
        section.keys[name] = key
        if is_null(value) and not known.nullable:
            continue
        section.written[name] = value
        read = known.shape.read(value, _key_place(place, key), collector)
        if read is not INVALID:
            section.values[name] = read
    for name in table.required:
        if name not in section.written:
            where = f"{place.label}: " if place.label else ""
            collector.add(table.missing, node, place.key(name), where=where, key=name)
    return section


def _key_place(place: Place, key: ScalarNode) -> Place:
    """The place of a key; an older name stands in the file, while messages use the new one."""
    at = place.key(key.text)
    return at if key.original is None else place.key(key.original).named(at.label)


def wrong_type(
    node: Node, place: Place, collector: Collector, wanted: str, *, title: str = "", hint: str | None = None
) -> Any:
    """Report a value of a wrong type, unless a placeholder in it has no value; returns INVALID."""
    if not (isinstance(node, ScalarNode) and node.unresolved):
        key = place.label or title or "the file"
        collector.add("invalid-type", node, place, hint=hint, key=key, wanted=wanted, value=describe(node))
    return INVALID


def wrong_value(
    node: Node, place: Place, collector: Collector, expected: str, *, hint: str | None = None, value: str | None = None
) -> Any:
    """Report a value outside its enum, range or format; returns INVALID."""
    shown = describe(node) if value is None else value
    collector.add("invalid-value", node, place, hint=hint, key=place.label, value=shown, expected=expected)
    return INVALID
