"""Collecting, ordering and printing diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from vally.errors import SpecError
from vally.model.evalspec import Diagnostic, Level, Related
from vally.spec.codes import DIAGNOSTIC_CODES
from vally.spec.nodes import Node, Source
from vally.text.suggest import did_you_mean

T = TypeVar("T")
KEPT_PER_FILE = 200
# Enough to choose those that are shown; a file of nothing but mistakes must not fill the memory.
_COLLECTED_PER_FILE = 5_000
# A mistake of a template is one of every row; these are enough to see which.
_RELATED_PLACES = 10
# Looking for near matches takes longer than all else that makes a finding.
_HINTED = 1_000


class Place:
    """Where a value stands: a JSON Pointer, the dotted name messages use, the place in words, and what it came from.

    Nearly every place is made and never shown, so pointer and name are put together when they are asked for.
    """

    __slots__ = ("_label", "_outer", "_pointer", "_step", "context", "related")

    def __init__(self, pointer: str = "", label: str = "", context: str | None = None) -> None:
        self._pointer: str | None = pointer
        self._label: str | None = label
        self._outer: Place | None = None
        self._step: str | int = ""
        self.context = context
        self.related: tuple[Related, ...] = ()

    def __repr__(self) -> str:
        return f"Place({self.pointer!r}, {self.label!r}, {self.context!r})"

    @property
    def pointer(self) -> str:
        """The JSON Pointer."""
        if self._pointer is None:
            assert self._outer is not None
            step = self._step
            self._pointer = f"{self._outer.pointer}/{escape(step) if isinstance(step, str) else step}"
        return self._pointer

    @property
    def label(self) -> str:
        """The dotted name."""
        if self._label is None:
            assert self._outer is not None
            outer, step = self._outer.label, self._step
            self._label = f"{outer}[{step}]" if isinstance(step, int) else f"{outer}.{step}" if outer else step
        return self._label

    def _inner(self, step: str | int) -> Place:
        place = Place.__new__(Place)
        place._pointer = place._label = None
        place._outer = self
        place._step = step
        place.context = self.context
        place.related = self.related
        return place

    def key(self, key: str) -> Place:
        """The place of a key of this mapping."""
        return self._inner(key)

    def item(self, index: int) -> Place:
        """The place of an item of this list, 0-based."""
        return self._inner(index)

    def named(self, label: str, context: str | None = None) -> Place:
        """The same place under another name."""
        place = Place.__new__(Place)
        place._pointer, place._outer, place._step = self._pointer, self._outer, self._step
        place._label = label
        place.context = self.context if context is None else context
        place.related = self.related
        return place

    def noting(self, *related: Related) -> Place:
        """The same place, every diagnostic of which names these other places too."""
        place = self.named(self.label)
        place.related = (*self.related, *related)
        return place


def escape(key: str) -> str:
    """A key as a reference token of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


class Collector:
    """Diagnostics of one load, at most 200 per file; with `lint` the levels are those of `vally lint`.

    `redact` takes the secrets out of a text.
    """

    def __init__(self, *, lint: bool = False, muted: bool = False) -> None:
        self.lint = lint
        self.muted = muted
        self.redact: Callable[[str], str] = str
        self._errors = 0
        self._kept: dict[tuple[object, ...], Diagnostic] = {}
        self._counts: dict[str | None, int] = {}

    def add(
        self,
        code: str,
        at: Node | Source | None,
        place: Place | None = None,
        *,
        hint: str | None = None,
        related: Sequence[Related] = (),
        level: Level | None = None,
        **values: object,
    ) -> None:
        """Add a diagnostic about a node or a whole file; an equal one at the same position is kept once."""
        if self.muted:
            return
        entry = DIAGNOSTIC_CODES[code]
        # Before values are cut: what is left of a secret would not be known as one.
        values = {key: self.redact(value) if isinstance(value, str) else value for key, value in values.items()}
        usual = entry.lint if self.lint and entry.lint else entry.level
        node = at if isinstance(at, Node) else None
        source = at.source if isinstance(at, Node) else at
        self.keep(
            Diagnostic(
                code=code,
                level=level or usual,
                message=entry.message(values),
                file=source.display if source else None,
                line=node.line if node else None,
                column=node.column if node else None,
                pointer=place.pointer if place else None,
                hint=hint,
                context=place.context if place else None,
                related=(*related, *(place.related if place else ())),
            )
        )

    def suggestion(self, word: str, candidates: Iterable[str]) -> str | None:
        """The did-you-mean hint for a word, or None; a file of nothing but mistakes gets no more of them."""
        if self.muted or sum(self._counts.values()) > _HINTED:
            return None
        return did_you_mean(word, candidates)

    @property
    def has_errors(self) -> bool:
        """Whether any was an error."""
        return self._errors > 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not self._kept

    def keep(self, diagnostic: Diagnostic) -> None:
        """Add a finished diagnostic."""
        identity = (diagnostic.code, diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.message)
        if (known := self._kept.get(identity)) is not None:
            self._also_at(identity, known, diagnostic.related)
            return
        is_error = diagnostic.level == "error"
        self._errors += is_error
        count = self._counts[diagnostic.file] = self._counts.get(diagnostic.file, 0) + 1
        if count <= _COLLECTED_PER_FILE or (is_error and self._errors <= _COLLECTED_PER_FILE):
            self._kept[identity] = diagnostic

    def _also_at(self, identity: tuple[object, ...], known: Diagnostic, related: Sequence[Related]) -> None:
        """Note where else what is known already was found."""
        free = max(0, _RELATED_PLACES - len(known.related))
        more = [place for place in related if place not in known.related][:free]
        if more:
            self._kept[identity] = replace(known, related=(*known.related, *more))

    def until_full(self, items: Iterable[T]) -> Iterator[T]:
        """The items, as long as there are not more errors than anybody looks at: a long list may be all mistakes."""
        for item in items:
            if self._errors > _COLLECTED_PER_FILE:
                return
            yield item

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add finished diagnostics."""
        for diagnostic in diagnostics:
            self.keep(diagnostic)

    def ordered(self) -> tuple[Diagnostic, ...]:
        """By file, line, column and code; of a file with too many, errors go first and a last one tells the rest."""
        shown: list[Diagnostic] = []
        for file, count in self._counts.items():
            found = sorted((item for item in self._kept.values() if item.file == file), key=_importance)
            shown += found[:KEPT_PER_FILE]
            if count > KEPT_PER_FILE:
                message = DIAGNOSTIC_CODES["more-diagnostics"].message({"count": count - KEPT_PER_FILE})
                shown.append(Diagnostic(code="more-diagnostics", level="info", message=message, file=file))
        return order(map(self._redacted, shown))

    def _redacted(self, item: Diagnostic) -> Diagnostic:
        hint, context = (text and self.redact(text) for text in (item.hint, item.context))
        related = tuple(replace(place, message=self.redact(place.message)) for place in item.related)
        return replace(item, message=self.redact(item.message), hint=hint, context=context, related=related)


def _importance(item: Diagnostic) -> tuple[object, ...]:
    return (item.level != "error", *_rank(item))


def order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort by file, line, column and code; `more-diagnostics` ends its file."""
    return tuple(sorted(diagnostics, key=_rank))


def _rank(item: Diagnostic) -> tuple[object, ...]:
    last = item.code == "more-diagnostics"
    return (item.file or "", last, item.line or 0, item.column or 0, item.code)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of them is an error."""
    return any(item.level == "error" for item in diagnostics)


Severity = Level | Literal["off"]


def adjust(
    diagnostics: Iterable[Diagnostic], *, strict: bool = False, severities: Mapping[str, Severity] | None = None
) -> tuple[Diagnostic, ...]:
    """Apply levels chosen per code (`off` drops), then raise warnings to errors when `strict`; infos stay."""
    adjusted = []
    for item in diagnostics:
        level: Severity = (severities or {}).get(item.code, item.level)
        if level == "off":
            continue
        if strict and level == "warning":
            level = "error"
        adjusted.append(item if level == item.level else replace(item, level=level))
    return tuple(adjusted)


def raise_errors(diagnostics: Sequence[Diagnostic]) -> None:
    """Raise SpecError with all diagnostics when any is an error; its message is the first error with its position."""
    errors = [item for item in diagnostics if item.level == "error"]
    if not errors:
        return
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise SpecError(f"{position(first)}{first.message} [{first.code}]{more}", diagnostics=diagnostics)


def position(item: Diagnostic) -> str:
    """`file:line:column: `, as far as known."""
    parts = [str(part) for part in (item.file, item.line, item.column) if part is not None]
    return f"{':'.join(parts)}: " if parts else ""


def format_diagnostic(item: Diagnostic) -> str:
    """The form of the command line: `error: file:line:column: message [code]`, then indented hint and related lines."""
    lines = [f"{item.level}: {position(item)}{item.message} [{item.code}]"]
    if item.hint:
        lines.append(f"  {item.hint}")
    for related in item.related:
        where = [str(part) for part in (related.file, related.line, related.column) if part is not None]
        lines.append(f"  {':'.join(where)}: {related.message}" if where else f"  {related.message}")
    return "\n".join(lines)


def related(node: Node, message: str) -> Related:
    """A second place."""
    return Related(file=node.source.display, line=node.line, column=node.column, message=message)
