"""The shapes of values: text, numbers, durations, lists, maps of texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.plain_values import read_plain
from vally.spec.scalars import is_null, scalar_value, shown
from vally.spec.sections import INVALID, Items, Shape, Table, read_section, wrong_type, wrong_value
from vally.text.durations import DurationOutOfRange, InvalidDuration, parse_duration
from vally.text.numbers import es_number

_YES_NO = frozenset({"yes", "no", "on", "off", "y", "n"})
BOOLEAN_HINT = "write true or false"
_DIGITS = re.compile("[0-9]{1,15}")


def is_yes_no(node: Node) -> bool:
    """Whether a value is a word that YAML 1.1 took for a boolean."""
    return isinstance(node, ScalarNode) and not node.style and node.text.lower() in _YES_NO


@dataclass(frozen=True, slots=True)
class RawShape:
    """Any value, read later: the node itself. `part` names what it is read as, for the JSON Schema."""

    part: str = ""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        return INVALID if isinstance(node, ScalarNode) and node.unresolved else node


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `blank` says whether it may hold only white space, `expected` is the form of `pattern` in words."""

    blank: bool = False
    pattern: str | None = None
    expected: str = ""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        text = read_text(node, place, collector)
        if text is INVALID:
            return INVALID
        if not self.blank and not text.strip():
            return wrong_value(node, place, collector, "a text that is not blank")
        if self.pattern and not re.fullmatch(self.pattern, text):
            return wrong_value(node, place, collector, self.expected)
        return text


def read_text(node: Node, place: Place, collector: Collector) -> Any:
    """A string without coercion."""
    if isinstance(node, ScalarNode) and not node.unresolved and isinstance(value := scalar_value(node), str):
        return value
    return wrong_type(node, place, collector, "a string")


@dataclass(frozen=True, slots=True)
class TextOfScalar:
    """A string, or a number or boolean as its scalar text, with a warning unless `silent`."""

    silent: bool = False

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if not isinstance(node, ScalarNode) or node.unresolved or scalar_value(node) is None:
            return wrong_type(node, place, collector, "a string")
        if not self.silent and not isinstance(scalar_value(node), str):
            collector.add("coerced-scalar", node, place, value=node.text)
        return node.text


@dataclass(frozen=True, slots=True)
class Choice:
    """One of fixed words."""

    words: tuple[str, ...]

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        text = read_text(node, place, collector)
        if text is INVALID or text in self.words:
            return text
        hint = collector.suggestion(text, self.words)
        return wrong_value(node, place, collector, any_of(self.words), hint=hint)


def any_of(words: tuple[str, ...]) -> str:
    """Words as an alternative: `a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


class Boolean:
    """`true` or `false`."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if isinstance(node, ScalarNode) and not node.unresolved and isinstance(value := scalar_value(node), bool):
            return value
        hint = BOOLEAN_HINT if is_yes_no(node) else None
        return wrong_type(node, place, collector, "true or false", hint=hint)


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer in a range."""

    low: int = 0
    high: int | None = None

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        value = _number(node)
        if not isinstance(value, int):
            return wrong_type(node, place, collector, "an integer")
        if value < self.low or (self.high is not None and value > self.high):
            upper = f"{self.low}..{self.high}" if self.high is not None else f">= {self.low}"
            return wrong_value(node, place, collector, f"an integer {upper}")
        return value


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number in a range."""

    low: float = 0
    high: float | None = None

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        value = _number(node)
        if value is None or not math.isfinite(value):
            return wrong_type(node, place, collector, "a number")
        if value < self.low or (self.high is not None and value > self.high):
            bounds = f"{es_number(self.low)}..{es_number(self.high)}" if self.high is not None else f">= {self.low}"
            return wrong_value(node, place, collector, f"a number {bounds}")
        return float(value)


def _number(node: Node) -> int | float | None:
    value = scalar_value(node) if isinstance(node, ScalarNode) and not node.unresolved else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


class Duration(NamedTuple):
    """A length of time: milliseconds and the text that says it, with a unit."""

    ms: int
    text: str


class DurationShape:
    """A duration above zero; a bare number means seconds, with a warning."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if not isinstance(node, ScalarNode) or node.unresolved:
            return wrong_type(node, place, collector, "a duration")
        try:
            duration = read_duration(node)
        except InvalidDuration as error:
            hint = error.message if isinstance(error, DurationOutOfRange) else None
            collector.add("invalid-duration", node, place, hint=hint, key=place.label, value=shown(node))
            return INVALID
        if duration.text != node.text:
            hint_value = duration.text.removesuffix("s")
            collector.add("bare-duration", node, place, key=place.label, value=hint_value)
        return duration


def read_duration(node: ScalarNode) -> Duration:
    """The duration of a scalar; raises InvalidDuration."""
    number = _number(node)
    text = node.text
    if number is not None and math.isfinite(number):
        text = f"{es_number(number)}s"
    elif _DIGITS.fullmatch(text):
        text = f"{int(text)}s"
    ms = parse_duration(text)
    if ms == 0:
        raise DurationOutOfRange(f"'{text}' is not longer than zero")
    return Duration(ms, text)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; `single` says what a string in its place is: an error, a one-item list, or that with a warning."""

    item: Shape
    single: str = "error"
    nonempty: bool = False
    of: str = "a list"

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if isinstance(node, ScalarNode) and self.single != "error" and isinstance(scalar_value(node), str):
            if self.single == "warning" and not node.unresolved:
                collector.add("scalar-for-list", node, place, key=place.label)
            value = self.item.read(node, place, collector)
            return INVALID if value is INVALID else Items((value,), (node,), (None,))
        if not isinstance(node, SequenceNode):
            return wrong_type(node, place, collector, self.of)
        if self.nonempty and not node.items:
            return wrong_value(node, place, collector, "at least one item", value="an empty list")
        items = collector.until_full(enumerate(node.items))
        found = [(index, self.item.read(item, place.item(index), collector), item) for index, item in items]
        kept = [entry for entry in found if entry[1] is not INVALID]
        if found and not kept:
            return INVALID
        numbers, values, nodes = zip(*kept, strict=True) if kept else ((), (), ())
        return Items(values, nodes, numbers)


KeyCheck = Callable[[ScalarNode, Place, Collector], bool]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from free names to values. With `nullable` a null value is kept as None, else it means absent.

    `names` is the pattern of names that `check` lets pass, for the JSON Schema.
    """

    value: Shape
    check: KeyCheck | None = None
    nullable: bool = False
    names: str | None = None

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if is_null(node):
            return {}
        if not isinstance(node, MappingNode):
            return wrong_type(node, place, collector, "a mapping")
        values: dict[str, Any] = {}
        for key, item in node.entries:
            named = self.check is None or self.check(key, place, collector)
            if is_null(item):
                if self.nullable and named:
                    values[key.text] = None
                continue
            value = self.value.read(item, place.key(key.text), collector)
            if value is not INVALID and named:
                values[key.text] = value
        return values


@dataclass(frozen=True, slots=True)
class SectionOf:
    """A mapping with fixed keys."""

    table: Table

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        section = read_section(node, self.table, place, collector)
        return INVALID if section is None else section


class Opaque:
    """Any JSON-like value, as it is."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        return read_plain(node, place, collector)


class OpaqueMapping:
    """A mapping of JSON-like values, as it is."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if not isinstance(node, MappingNode):
            return wrong_type(node, place, collector, "a mapping")
        return read_plain(node, place, collector)
