"""Tags and the filters that select by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from vally.spec.scalars import is_null
from vally.spec.sections import INVALID, wrong_type
from vally.spec.shapes import TextOfScalar

Tags = Mapping[str, str | tuple[str, ...]]
_VALUE = TextOfScalar()


class TagsShape:
    """A mapping from keys to a text or a list of texts; an empty list and null mean absent."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        if not isinstance(node, MappingNode):
            return wrong_type(node, place, collector, "a mapping")
        tags: dict[str, str | tuple[str, ...]] = {}
        for key, value in node.entries:
            read = _texts(value, place.key(key.text), collector)
            if not key.text or "=" in key.text or "," in key.text:
                expected = "a name without '=' and ','"
                collector.add(
                    "invalid-value", key, place.key(key.text), key=place.label, value=f"'{key.text}'", expected=expected
                )
            elif read is not INVALID and read != ():
                tags[key.text] = read
        return tags


def _texts(node: Node, place: Place, collector: Collector) -> Any:
    if is_null(node):
        return ()
    if isinstance(node, ScalarNode):
        return _VALUE.read(node, place, collector)
    if not isinstance(node, SequenceNode):
        return wrong_type(node, place, collector, "a string or a list of strings")
    items = collector.until_full(enumerate(node.items))
    values = [_VALUE.read(item, place.item(index), collector) for index, item in items]
    return INVALID if any(value is INVALID for value in values) else tuple(values)


class FilterShape(TagsShape):
    """A filter: the values of each key as a tuple. A key with an empty list matches nothing and is kept."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        tags = super().read(node, place, collector)
        if tags is INVALID:
            return INVALID
        chosen = {key: (value,) if isinstance(value, str) else value for key, value in tags.items()}
        assert isinstance(node, MappingNode)
        for key, value in node.entries:
            if isinstance(value, SequenceNode) and not value.items:
                chosen[key.text] = ()
        return chosen


def matches_filter(tags: Tags, wanted: Mapping[str, Iterable[str]]) -> bool:
    """Whether for every key of the filter any of its values equals the tag, or any element of its list."""
    return all(_matches(tags.get(key), set(values)) for key, values in wanted.items())


def _matches(tag: str | tuple[str, ...] | None, values: set[str]) -> bool:
    if tag is None:
        return False
    return tag in values if isinstance(tag, str) else not values.isdisjoint(tag)
