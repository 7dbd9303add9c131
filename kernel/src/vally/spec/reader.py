"""YAML text to a tree of nodes: one safe document, the 1.2 core schema, positions in code points."""

from __future__ import annotations

import re

from vally.spec.composer import Composer, Stop
from vally.spec.diagnostics import Collector, Place
from vally.spec.files import decode, position_at, read_file
from vally.spec.masking import Mask, TooManyCharacters
from vally.spec.nodes import MappingNode, Node, Source
from vally.spec.sections import wrong_type

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def read_yaml(data: bytes, source: Source, collector: Collector) -> Node | None:
    """The top node of the one document in `data`, or None: nothing in it, or an error in the collector."""
    text = decode(data, source, collector)
    return None if text is None else read_text(text, source, collector)


def read_mapping(source: Source, limit: int, collector: Collector, title: str) -> MappingNode | None:
    """The top mapping of a file of at most `limit` bytes, or None after an error."""
    data = read_file(source.path, source, limit, collector)
    node = None if data is None else read_yaml(data, source, collector)
    if collector.has_errors:
        return None
    if node is None:
        collector.add("empty-document", Node(source, 1, 1))
        return None
    if not isinstance(node, MappingNode):
        wrong_type(node, Place(), collector, "a mapping", title=title)
        return None
    return node


def read_text(text: str, source: Source, collector: Collector, *, first_line: int = 1) -> Node | None:
    """Like read_yaml for decoded text whose first line has the number `first_line` in its file."""
    if bad := _FORBIDDEN.search(text):
        node = position_at(source, text, bad.start(), first_line)
        collector.add("yaml-syntax", node, text=f"character U+{ord(bad[0]):04X} is not allowed")
        return None
    try:
        mask = Mask(text)
    except TooManyCharacters:
        collector.add("yaml-limit", Node(source, first_line, 1))
        return None
    composer = Composer(text, mask, source, collector, first_line)
    try:
        return composer.document()
    except Stop:
        return None
