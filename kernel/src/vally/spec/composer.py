"""Events of a YAML parser to a tree of nodes, with limits on its size after aliases are followed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vally.spec.diagnostics import Collector, Place, escape, related
from vally.spec.masking import Mask
from vally.spec.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode, Source, Span
from vally.spec.scalars import describe, fits_tag

MAX_DEPTH = 64
MAX_NODES = 1_000_000
_TAG_PREFIX = "tag:yaml.org,2002:"
_TAGS = frozenset({"str", "int", "float", "bool", "null", "map", "seq"})
# Directives may stand only before the document; as comments they change nothing.
_PROLOGUE = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)|%[^\r\n]*(?:\r\n|\r|\n|$))+")
_ESCAPE_HINT = "in double quotes write \\\\ for \\, or use single quotes"


class Stop(Exception):
    """Reading ends here; the reason is in the collector."""


@dataclass(slots=True)
class _Anchor:
    node: Node | None = None
    size: int = 0
    height: int = 0
    end: int = 0


@dataclass(slots=True)
class _Measured:
    """A node with the number of nodes at and below it, its nesting, and where its text ends."""

    node: Node
    size: int = 1
    height: int = 0
    end: int = 0


@dataclass(slots=True)
class Composer:
    """Reads one document of `text`, whose first line has the number `first_line` in its file."""

    text: str
    mask: Mask
    source: Source
    collector: Collector
    first_line: int
    anchors: dict[str, _Anchor] = field(default_factory=dict)
    count: int = 0
    path: list[str | int] = field(default_factory=list)
    events: Any = None
    yaml: Any = None

    def document(self) -> Node | None:
        """The top node, or None when there is nothing; raises Stop after an error that ends reading."""
        import yaml

        self.yaml = yaml
        loader_type: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        masked = self.mask.text
        if prologue := _PROLOGUE.match(masked):
            masked = re.sub(r"(?m)^%", "#", prologue[0]) + masked[prologue.end() :]
        try:
            self.events = loader_type(masked)
            return self._single()
        except yaml.YAMLError as error:
            self._syntax_error(error)
            raise Stop from None
        finally:
            if self.events is not None:
                self.events.dispose()

    def _single(self) -> Node | None:
        self._next()
        if isinstance(self._peek(), self.yaml.StreamEndEvent):
            return None
        self._next()
        top = self._node(1)
        self._next()
        if not isinstance(after := self._peek(), self.yaml.StreamEndEvent):
            self._stop("multiple-documents", self._position(after))
        empty = isinstance(top.node, ScalarNode) and not top.node.text and not top.node.style and top.node.tag is None
        return None if empty else top.node

    def _next(self) -> Any:
        return self.events.get_event()

    def _peek(self) -> Any:
        return self.events.peek_event()

    def _position(self, event: Any) -> Node:
        mark = event.start_mark
        return Node(self.source, self.first_line + mark.line, mark.column + 1)

    def _report(self, code: str, at: Node, **values: Any) -> None:
        self.collector.add(code, at, Place("".join(f"/{escape(str(step))}" for step in self.path)), **values)

    def _stop(self, code: str, at: Node, **values: Any) -> None:
        self._report(code, at, **values)
        raise Stop

    def _syntax_error(self, error: Any) -> None:
        problem = getattr(error, "problem", None) or "unreadable text"
        context = getattr(error, "context", None)
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        node = Node(self.source, self.first_line + mark.line, mark.column + 1) if mark else Node(self.source, 1, 1)
        text = f"{context}, {problem}" if context else problem
        hint = _ESCAPE_HINT if "unknown escape" in problem else None
        self._report("yaml-syntax", node, hint=hint, text=self.mask.restore(text)[0])

    def _node(self, depth: int) -> _Measured:
        event = self._next()
        if isinstance(event, self.yaml.AliasEvent):
            return self._alias(event, depth)
        self._add(1, event)
        anchor = _Anchor()
        if event.anchor is not None:
            self.anchors[event.anchor] = anchor
        if isinstance(event, self.yaml.ScalarEvent):
            measured = self._scalar(event)
        else:
            if depth > MAX_DEPTH:
                self._stop("yaml-limit", self._position(event))
            mapping = isinstance(event, self.yaml.MappingStartEvent)
            measured = self._mapping(event, depth) if mapping else self._sequence(event, depth)
        anchor.node, anchor.size, anchor.height = measured.node, measured.size, measured.height
        anchor.end = measured.end
        return measured

    def _add(self, size: int, event: Any) -> None:
        self.count += size
        if self.count > MAX_NODES:
            self._stop("yaml-limit", self._position(event))

    def _alias(self, event: Any, depth: int) -> _Measured:
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            self._stop("yaml-syntax", self._position(event), text=f"found undefined alias '{event.anchor}'")
        assert anchor is not None
        if anchor.node is None or depth - 1 + anchor.height > MAX_DEPTH:
            self._stop("yaml-limit", self._position(event))
        assert anchor.node is not None
        self._add(anchor.size, event)
        return _Measured(anchor.node, anchor.size, anchor.height, event.end_mark.index)

    def _tag(self, event: Any, kind: str) -> str | None:
        if event.tag is None:
            return None
        tag = event.tag.removeprefix(_TAG_PREFIX)
        collection = tag if tag in ("map", "seq") else None
        if tag == event.tag or tag not in _TAGS:
            shown = f"!!{tag}" if tag != event.tag else event.tag
            self._report("yaml-unsafe-tag", self._position(event), tag=self.mask.restore(shown)[0])
            return None
        if (collection or "scalar") != kind:
            self._report("yaml-syntax", self._position(event), text=f"this value cannot have the tag !!{tag}")
            return None
        return str(tag)

    def _scalar(self, event: Any) -> _Measured:
        at = self._position(event)
        text, holes = self.mask.restore(event.value)
        node = ScalarNode(self.source, at.line, at.column, text, event.style or "", self._tag(event, "scalar"))
        node.holes = holes
        node.holes_inside = bool(holes)
        if node.tag is not None and not holes and not fits_tag(node):
            self._report("yaml-syntax", at, text=f"{describe(node)} cannot have the tag !!{node.tag}")
        return _Measured(node, end=event.end_mark.index)

    def _sequence(self, event: Any, depth: int) -> _Measured:
        at = self._position(event)
        self._tag(event, "seq")
        node = SequenceNode(self.source, at.line, at.column, [])
        measured = _Measured(node, end=event.end_mark.index)
        while not isinstance(self._peek(), self.yaml.SequenceEndEvent):
            self.path.append(len(node.items))
            item = self._node(depth + 1)
            self.path.pop()
            node.items.append(item.node)
            self._grow(measured, item)
        self._close(node, measured, event)
        return measured

    def _mapping(self, event: Any, depth: int) -> _Measured:
        at = self._position(event)
        self._tag(event, "map")
        node = MappingNode(self.source, at.line, at.column, [])
        measured = _Measured(node, end=event.end_mark.index)
        seen: dict[str, ScalarNode] = {}
        merges: list[Node] = []
        while not isinstance(self._peek(), self.yaml.MappingEndEvent):
            start = self._peek()
            key = self._node(depth + 1)
            self.path.append(key.node.text if isinstance(key.node, ScalarNode) else "")
            value = self._node(depth + 1)
            self._grow(measured, key)
            self._grow(measured, value)
            if isinstance(key.node, ScalarNode):
                self._keep(node, self._key(key.node, start), value.node, seen, merges)
            else:
                self._report("yaml-complex-key", self._position(start))
            self.path.pop()
        for merged in merges:
            self._merge(node, merged)
        self._close(node, measured, event)
        return measured

    def _keep(
        self, node: MappingNode, key: ScalarNode, value: Node, seen: dict[str, ScalarNode], merges: list[Node]
    ) -> None:
        first = seen.setdefault(key.text, key)
        if first is not key:
            note = related(first, "first here")
            self._report("duplicate-key", key, key=key.text, line=first.line, related=[note])
        elif key.text == "<<" and not key.style and key.tag is None:
            merges.append(value)
        else:
            node.entries.append(Entry(key, value))

    def _key(self, key: ScalarNode, event: Any) -> ScalarNode:
        """A key stands where it is written, also when it is an alias."""
        if not isinstance(event, self.yaml.AliasEvent):
            return key
        at = self._position(event)
        return ScalarNode(self.source, at.line, at.column, key.text, key.style, key.tag)

    def _grow(self, whole: _Measured, part: _Measured) -> None:
        whole.size += part.size
        whole.height = max(whole.height, part.height)
        whole.end = max(whole.end, part.end)
        whole.node.holes_inside = whole.node.holes_inside or part.node.holes_inside

    def _close(self, node: SequenceNode | MappingNode, measured: _Measured, start: Any) -> None:
        end = self._next()
        measured.height += 1
        if start.flow_style:
            measured.end = end.end_mark.index
        node.span = Span(self.text, start.start_mark.index, measured.end)

    def _merge(self, node: MappingNode, merged: Node) -> None:
        parts = merged.items if isinstance(merged, SequenceNode) else [merged]
        if not all(isinstance(part, MappingNode) for part in parts):
            wrong = next(part for part in parts if not isinstance(part, MappingNode))
            wanted = "a mapping or a list of mappings"
            self._report("invalid-type", wrong, key="<<", wanted=wanted, value=describe(wrong))
            return
        own = {entry.key.text for entry in node.entries}
        for part in parts:
            assert isinstance(part, MappingNode)
            for entry in part.entries:
                if entry.key.text not in own:
                    own.add(entry.key.text)
                    node.entries.append(entry)
