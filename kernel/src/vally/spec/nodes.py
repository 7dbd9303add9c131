"""The tree of a YAML document. Every node knows its file and position; nodes are shared by aliases, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Source:
    """One file: how messages name it, where it is, and the directory its relative paths start from.

    `content` stands for what the file holds.
    """

    display: str
    path: Path
    base: Path
    content: bytes | None = None


class Hole(NamedTuple):
    """A placeholder inside a scalar: `text[start:end]`, with `escaped` for the form `$${…}`."""

    start: int
    end: int
    name: str
    default: str | None
    escaped: bool


class Node:
    """A place in a file, 1-based. `holes_inside` tells whether any scalar at or below it has placeholders."""

    __slots__ = ("column", "holes_inside", "line", "source")

    def __init__(self, source: Source, line: int, column: int) -> None:
        self.source = source
        self.line = line
        self.column = column
        self.holes_inside = False

    def is_at(self, other: Node) -> bool:
        """Whether both stand at one place: an anchored value and its aliases, or a template filled for two rows."""
        return (self.line, self.column, self.source) == (other.line, other.column, other.source)


class ScalarNode(Node):
    """Text and how it was written.

    `style` is the quote or block character, empty for plain; `tag` a core tag such as `int`. Of a scalar whose
    placeholders were filled, `written` is the text that records may show (process variables stay placeholders) and
    `original` the text in the file; `unresolved` means that a placeholder has no value.
    """

    __slots__ = ("holes", "original", "style", "tag", "text", "unresolved", "written")

    def __init__(
        self, source: Source, line: int, column: int, text: str, style: str = "", tag: str | None = None
    ) -> None:
        # Most nodes are scalars, so the call of the base class is saved.
        self.source = source
        self.line = line
        self.column = column
        self.holes_inside = False
        self.text = text
        self.style = style
        self.tag = tag
        self.holes: tuple[Hole, ...] = ()
        self.written: str | None = None
        self.original: str | None = None
        self.unresolved = False


class SequenceNode(Node):
    """A list. `span` is the decoded text of its file with the offsets where it starts and ends in it."""

    __slots__ = ("items", "span")

    def __init__(self, source: Source, line: int, column: int, items: list[Node]) -> None:
        super().__init__(source, line, column)
        self.items = items
        self.span: tuple[str, int, int] | None = None


class Entry(NamedTuple):
    """One key of a mapping and its value."""

    key: ScalarNode
    value: Node


class MappingNode(Node):
    """Keys in the order of the file; `span` as for a list."""

    __slots__ = ("entries", "span")

    def __init__(self, source: Source, line: int, column: int, entries: list[Entry]) -> None:
        super().__init__(source, line, column)
        self.entries = entries
        self.span: tuple[str, int, int] | None = None

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        for name, value in self.entries:
            if name.text == key:
                return value
        return None

    def key(self, key: str) -> ScalarNode | None:
        """The key itself, or None."""
        for name, _ in self.entries:
            if name.text == key:
                return name
        return None


def scalars(node: Node) -> Iterator[ScalarNode]:
    """Every scalar value at or below a node; keys are left out."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ScalarNode):
            yield current
        elif isinstance(current, SequenceNode):
            pending.extend(current.items)
        elif isinstance(current, MappingNode):
            pending.extend(entry.value for entry in current.entries)
