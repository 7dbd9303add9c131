"""The text of a YAML file with the place of everything in it, so that one piece can change and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vally import hide_placeholders

_PROPERTIES = re.compile(r"(?:[&!]\S*(?:\s|#[^\r\n]*[\r\n])+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, mapping, list or alias in the text: `text[start:end]`, with its anchor and tag in front of `body`.

    `value` is the text of a scalar without quotes and escapes; one with placeholders is as written.
    """

    kind: str
    start: int
    end: int
    body: int
    value: str = ""
    flow: bool = False
    style: str = ""
    anchor: str | None = None
    tag: str | None = None
    entries: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    target: Node | None = None

    @property
    def meant(self) -> Node:
        """The node itself, or what an alias stands for."""
        return self if self.target is None else self.target

    def get(self, key: str) -> tuple[Node, Node] | None:
        """Key and value of a mapping, merged ones included."""
        merged: list[Node] = []
        for name, value in self.meant.entries:
            if name.meant.value == key:
                return name, value
            if name.meant.value == "<<":
                merged += value.meant.items or [value]
        found = (part.get(key) for part in merged if part.meant.kind == "mapping")
        return next((entry for entry in found if entry is not None), None)


class Unparsable(Exception):
    """A text that cannot be taken apart."""


class YamlText:
    """One document. Raises Unparsable for what the parser of this distribution cannot read, although vally can."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._anchors: dict[str, Node] = {}
        try:
            self.root = self._document()
        except Exception as error:  # the round-trip parser raises more than its own errors
            raise Unparsable(str(error)) from None

    def at(self, pointer: str) -> Node | None:
        """What stands at a JSON Pointer: the value as written, which may be an alias."""
        found = self.entry(pointer)
        return None if found is None else found[1]

    def entry(self, pointer: str) -> tuple[Node | None, Node] | None:
        """Key and value at a JSON Pointer; items of lists and the root have no key."""
        key: Node | None = None
        node = self.root
        for token in pointer.split("/")[1:]:
            if node is None:
                return None
            found = _step(node.meant, token.replace("~1", "/").replace("~0", "~"))
            if found is None:
                return None
            key, node = found
        return None if node is None else (key, node)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position, both 1-based."""
        breaks = [match.end() for match in _LINE_END.finditer(self.text)]
        return ([0, *breaks][line - 1] if line <= len(breaks) + 1 else len(self.text)) + column - 1

    def indent(self, offset: int) -> str:
        """The blanks that put something below an offset."""
        start = max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1
        return " " * (offset - start)

    @property
    def line_end(self) -> str:
        """How its lines end; that of the first one, if they differ."""
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    def _document(self) -> Node | None:
        from ruamel.yaml import YAML

        events = iter(YAML(typ="rt", pure=True).parse(hide_placeholders(self.text)))
        return next((self._node(event, events) for event in events if _starts_node(event)), None)

    def _node(self, event: Any, events: Iterator[Any]) -> Node:
        kind = type(event).__name__
        start, end = event.start_mark.index, event.end_mark.index
        if kind == "AliasEvent":
            return Node("alias", start, end, start, target=self._anchors.get(event.anchor))
        found = _PROPERTIES.match(self.text, start) if event.anchor or event.tag else None
        node = Node("scalar", start, end, found.end() if found else start, anchor=event.anchor, tag=_tag(event))
        if event.anchor:
            self._anchors[event.anchor] = node
        if kind == "ScalarEvent":
            node.style = event.style or ""
            node.value = self._value(node, event)
            return node
        node.flow = bool(event.flow_style)
        node.kind = "mapping" if kind == "MappingStartEvent" else "sequence"
        return self._filled(node, events)

    def _value(self, node: Node, event: Any) -> str:
        raw = self.text[node.body : node.end]
        if not is_placeholder(raw):
            return str(event.value)
        return raw[1:-1] if node.style in ("'", '"') else raw

    def _filled(self, node: Node, events: Iterator[Any]) -> Node:
        children: list[Node] = []
        for event in events:
            if not _starts_node(event):
                # The end of a block is where the next token starts; its last child ends before.
                node.end = (
                    event.end_mark.index if node.flow else max((child.end for child in children), default=node.end)
                )
                break
            children.append(self._node(event, events))
        if node.kind == "sequence":
            node.items = children
        else:
            node.entries = list(zip(children[::2], children[1::2], strict=True))
        return node


def _starts_node(event: Any) -> bool:
    return type(event).__name__ in ("AliasEvent", "ScalarEvent", "MappingStartEvent", "SequenceStartEvent")


def _tag(event: Any) -> str | None:
    return None if event.tag is None else str(event.tag)


def _step(node: Node, token: str) -> tuple[Node | None, Node] | None:
    if node.kind == "sequence":
        return (None, node.items[int(token)]) if token.isdecimal() and int(token) < len(node.items) else None
    return node.get(token) if node.kind == "mapping" else None


def is_placeholder(text: str) -> bool:
    """Whether a text holds a placeholder, or another thing that only vally can read."""
    return hide_placeholders(text) != text


@dataclass(frozen=True, slots=True)
class Edit:
    """`text[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str


def apply_edits(text: str, edits: list[Edit]) -> str:
    """The text with all edits; of two that overlap the later one is left out."""
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            continue
        pieces += [text[position : edit.start], edit.replacement]
        position = edit.end
    return "".join([*pieces, text[position:]])
