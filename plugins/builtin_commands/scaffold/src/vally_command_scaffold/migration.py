"""Rewriting one file until vally finds no older spelling in it, as long as it means the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vally_command_scaffold.documents import Document, Reading
from vally_command_scaffold.grader_names import CODES as NAME_CODES
from vally_command_scaffold.grader_names import rename_graders
from vally_command_scaffold.rewrites import REWRITES
from vally_command_scaffold.yaml_text import Edit, Unparsable, YamlText, apply_edits

if TYPE_CHECKING:
    from vally import Diagnostic

OLDER = frozenset({*REWRITES, *NAME_CODES, "config-and-defaults", "removed-key"})
"""Codes of older spellings that stand in the text of a file."""
_BOM = b"\xef\xbb\xbf"
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Migrated:
    """A file before and after, with how many findings were settled.

    `left` are older spellings that a person has to settle, `errors` what keeps vally from reading the file.
    """

    before: bytes
    after: bytes
    settled: int = 0
    left: tuple[Diagnostic, ...] = ()
    errors: tuple[Diagnostic, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was rewritten."""
        return self.before != self.after


@dataclass(slots=True)
class _Attempt:
    """One round: the edits for the findings, each with the finding it settles."""

    edits: list[tuple[Diagnostic, list[Edit]]] = field(default_factory=list)
    renamed: frozenset[str] = frozenset()


def migrate(document: Document, content: bytes, types: Sequence[str]) -> Migrated:
    """Rewrite the older spellings of a file; `types` are the keywords of graders.

    A rewrite after which the file would mean something else is not made.
    """
    mark = _BOM if content.startswith(_BOM) else b""
    reading = document.read(content)
    if reading.plan is None:
        return Migrated(content, content, errors=tuple(item for item in reading.findings if item.level == "error"))
    current, settled, refused = content, 0, set[tuple[str, str]]()
    for _ in range(_ROUNDS):
        findings = [item for item in reading.findings if _is_older(item) and _identity(item) not in refused]
        text = current[len(mark) :].decode("utf-8") if findings else ""
        attempt = _attempt(text, findings, types) if findings else _Attempt()
        if not attempt.edits:
            break
        changed, kept = _apply(document, reading, attempt, mark, text)
        refused |= {_identity(item) for item, _ in attempt.edits} - kept
        if kept:
            current, reading, settled = changed, document.read(changed), settled + len(kept)
    left = tuple(item for item in reading.findings if _is_older(item))
    return Migrated(content, current, settled, left)


def _is_older(finding: Diagnostic) -> bool:
    # The same name twice in one stimulus is a mistake, not an older spelling.
    return finding.code in OLDER and not (finding.code == "duplicate-grader-name" and finding.level == "error")


def _identity(finding: Diagnostic) -> tuple[str, str]:
    return finding.code, finding.pointer or ""


def _attempt(text: str, findings: Sequence[Diagnostic], types: Sequence[str]) -> _Attempt:
    attempt = _Attempt()
    try:
        source = YamlText(text)
    except Unparsable:
        return attempt
    for finding in findings:
        rewrite = REWRITES.get(finding.code)
        edits = None if rewrite is None else rewrite(finding, source)
        if edits:
            attempt.edits.append((finding, edits))
    attempt.edits = list(_once(source, attempt.edits))
    named = [item for item in findings if item.code in NAME_CODES]
    renaming = rename_graders(source, named, types)
    settled = [item for item in named if item not in renaming.left]
    if settled:
        attempt.edits += [(settled[0], renaming.edits), *((item, []) for item in settled[1:])]
        attempt.renamed = frozenset(renaming.names)
    return attempt


def _once(source: YamlText, found: list[tuple[Diagnostic, list[Edit]]]) -> Iterator[tuple[Diagnostic, list[Edit]]]:
    """An alias follows its anchor, when that gets a unit too."""
    places = [edit.start for _, edits in found for edit in edits]
    for finding, edits in found:
        node = source.at(finding.pointer or "") if finding.code == "bare-duration" else None
        target = None if node is None else node.target
        follows = target is not None and any(target.start <= place < target.end for place in places)
        yield finding, [] if follows else edits


def _apply(
    document: Document, before: Reading, attempt: _Attempt, mark: bytes, text: str
) -> tuple[bytes, set[tuple[str, str]]]:
    """The content after those edits that change no meaning, and the findings they settle."""

    def changed(groups: list[tuple[Diagnostic, list[Edit]]]) -> bytes:
        return mark + apply_edits(text, [edit for _, edits in groups for edit in edits]).encode("utf-8")

    def holds(groups: list[tuple[Diagnostic, list[Edit]]]) -> bool:
        return _means_the_same(before, document.read(changed(groups)), attempt.renamed)

    groups = attempt.edits
    if not holds(groups):
        kept: list[tuple[Diagnostic, list[Edit]]] = []
        for group in groups:
            if holds([*kept, group]):
                kept.append(group)
        groups = kept
    return changed(groups), {_identity(item) for item, _ in groups}


def _means_the_same(before: Reading, after: Reading, renamed: frozenset[str]) -> bool:
    if before.plan != after.plan or len(before.grader_names) != len(after.grader_names):
        return False
    names = zip(before.grader_names, after.grader_names, strict=True)
    if any(old != new and old not in renamed for old, new in names):
        return False
    return _says_nothing_new(before.errors, after.errors)


def _says_nothing_new(before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> bool:
    """Whether all that is wrong was wrong before: at the same place, or in the same words where that was renamed."""
    places = {(item.code, item.pointer) for item in before}
    words = {(item.code, item.context, item.message) for item in before}
    return all(
        (item.code, item.pointer) in places or (item.code, item.context, item.message) in words for item in after
    )
