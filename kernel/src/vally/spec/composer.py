"""Events of a YAML parser to a tree of nodes, with limits on its size after aliases are followed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vally.spec.diagnostics import Collector, Place, escape, related
from vally.spec.masking import Mask
from vally.spec.nodes import Entry, Hole, MappingNode, Node, ScalarNode, SequenceNode, Source
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
    """What aliases of an anchor stand for: a node, none before its end; how many there are in it, and its nesting."""

    node: Node | None = None
    size: int = 0
    height: int = 0


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
    next: Any = None
    yaml: Any = None
    # Nesting of the node that was made last, and the event with which its text ends.
    height: int = 0
    last: Any = None

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
            self.next = self.events.get_event
            return self._single()
        except yaml.YAMLError as error:
            self._syntax_error(error)
            raise Stop from None
        finally:
            if self.events is not None:
                self.events.dispose()

    def _single(self) -> Node | None:
        self.next()
        if isinstance(self.next(), self.yaml.StreamEndEvent):
            return None
        top = self._node(self.next(), 1)
        self.next()
        if not isinstance(after := self.next(), self.yaml.StreamEndEvent):
            self._stop("multiple-documents", self._position(after))
        empty = isinstance(top, ScalarNode) and not top.text and not top.style and top.tag is None
        return None if empty else top

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
        if "maximum nesting depth" in problem:
            # The scanner looks for a key's colon further ahead than the parser has come.
            self._report("yaml-limit", node)
            return
        text = f"{context}, {problem}" if context else problem
        hint = _ESCAPE_HINT if "unknown escape" in problem else None
        self._report("yaml-syntax", node, hint=hint, text=self.mask.restore(text)[0])

    def _node(self, event: Any, depth: int) -> Node:
        """The node that begins with an event."""
        kind = type(event)
        if kind is self.yaml.AliasEvent:
            return self._alias(event, depth)
        before = self.count
        self.count += 1
        if before >= MAX_NODES:
            self._stop("yaml-limit", self._position(event))
        # Most nodes are scalars without an anchor, so they come first.
        if kind is self.yaml.ScalarEvent:
            scalar = self._scalar(event)
            if event.anchor is not None:
                self.anchors[event.anchor] = _Anchor(scalar, 1, 0)
            return scalar
        if depth > MAX_DEPTH:
            self._stop("yaml-limit", self._position(event))
        read = self._mapping if kind is self.yaml.MappingStartEvent else self._sequence
        if event.anchor is None:
            return read(event, depth)
        anchor = self.anchors[event.anchor] = _Anchor()
        anchor.node = read(event, depth)
        anchor.size, anchor.height = self.count - before, self.height
        return anchor.node

    def _alias(self, event: Any, depth: int) -> Node:
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            self._stop("yaml-syntax", self._position(event), text=f"found undefined alias '{event.anchor}'")
        assert anchor is not None
        if anchor.node is None or depth - 1 + anchor.height > MAX_DEPTH:
            self._stop("yaml-limit", self._position(event))
        assert anchor.node is not None
        self.count += anchor.size
        if self.count > MAX_NODES:
            self._stop("yaml-limit", self._position(event))
        self.height, self.last = anchor.height, event
        return anchor.node

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

    def _scalar(self, event: Any) -> ScalarNode:
        mark = event.start_mark
        text: str = event.value
        holes: tuple[Hole, ...] = ()
        if self.mask.hides:
            text, holes = self.mask.restore(text, event.style or "")
        tag = None if event.tag is None else self._tag(event, "scalar")
        node = ScalarNode(self.source, self.first_line + mark.line, mark.column + 1, text, event.style or "", tag)
        if holes:
            node.holes = holes
            node.holes_inside = True
        elif tag is not None and not fits_tag(node):
            self._report("yaml-syntax", node, text=f"{describe(node)} cannot have the tag !!{tag}")
        self.height, self.last = 0, event
        return node

    def _sequence(self, event: Any, depth: int) -> SequenceNode:
        mark = event.start_mark
        if event.tag is not None:
            self._tag(event, "seq")
        node = SequenceNode(self.source, self.first_line + mark.line, mark.column + 1, [])
        self.last, height = event, 0
        end, path, items = self.yaml.SequenceEndEvent, self.path, node.items
        while type(start := self.next()) is not end:
            path.append(len(items))
            item = self._node(start, depth + 1)
            path.pop()
            items.append(item)
            if self.height > height:
                height = self.height
            if item.holes_inside:
                node.holes_inside = True
        self._close(node, height, event, start)
        return node

    def _mapping(self, event: Any, depth: int) -> MappingNode:
        mark = event.start_mark
        if event.tag is not None:
            self._tag(event, "map")
        node = MappingNode(self.source, self.first_line + mark.line, mark.column + 1, [])
        self.last, height = event, 0
        seen: dict[str, ScalarNode] = {}
        merges: list[Node] = []
        end, path, alias = self.yaml.MappingEndEvent, self.path, self.yaml.AliasEvent
        while type(start := self.next()) is not end:
            key = self._node(start, depth + 1)
            if type(start) is alias:
                key = self._key(key, start)
            if self.height > height:
                height = self.height
            path.append(key.text if isinstance(key, ScalarNode) else "")
            value = self._node(self.next(), depth + 1)
            if self.height > height:
                height = self.height
            if value.holes_inside or key.holes_inside:
                node.holes_inside = True
            if not isinstance(key, ScalarNode):
                self._report("yaml-complex-key", self._position(start))
            elif seen.setdefault(key.text, key) is not key:
                note = related(seen[key.text], "first here")
                self._report("duplicate-key", key, key=key.text, line=seen[key.text].line, related=[note])
            elif key.text == "<<" and not key.style and key.tag is None:
                merges.append(value)
            else:
                node.entries.append(Entry(key, value))
            path.pop()
        for merged in merges:
            self._merge(node, merged)
        self._close(node, height, event, start)
        return node

    def _key(self, key: Node, event: Any) -> Node:
        """A key stands where it is written, also when it is an alias."""
        if not isinstance(key, ScalarNode):
            return key
        at = self._position(event)
        return ScalarNode(self.source, at.line, at.column, key.text, key.style, key.tag)

    def _close(self, node: SequenceNode | MappingNode, height: int, start: Any, end: Any) -> None:
        self.height = height + 1
        if start.flow_style:
            self.last = end
        node.span = (self.text, start.start_mark.index, self.last.end_mark.index)

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
