"""New names for graders: slugs, each used by one grader of a file, and the weights that go by them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vally import Diagnostic
from vally_command_scaffold.rewrites import insert_entry
from vally_command_scaffold.yaml_text import Edit, Node, YamlText, is_placeholder

CODES = frozenset({"deprecated-grader-name", "duplicate-grader-name"})
_LONGEST = 60
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_WORDS = frozenset({"true", "false", "null"})


@dataclass(slots=True)
class Renaming:
    """Edits, and what was renamed: old name to its new ones; `left` are findings that cannot be settled so."""

    edits: list[Edit] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    left: list[Diagnostic] = field(default_factory=list)


def rename_graders(source: YamlText, findings: Sequence[Diagnostic], types: Iterable[str]) -> Renaming:
    """Give every grader that a finding is about a name of its own; `types` are words that names must not be."""
    renaming = Renaming()
    written = list(_names(source, source.root))
    taken = {*types, *(name.meant.value for name in written)}
    renamed: set[int] = set()
    for finding in findings:
        node = source.at(finding.pointer or "")
        if node is not None and node.start in renamed:
            continue
        if node is None or node.meant.kind != "scalar" or is_placeholder(node.meant.value):
            renaming.left.append(finding)
            continue
        if finding.code == "duplicate-grader-name" and finding.related[0].line == finding.line:
            # One entry that a template repeats for every row.
            renaming.left.append(finding)
            continue
        old = node.meant.value
        new = _free(slug(old), taken)
        taken.add(new)
        renamed.add(node.start)
        renaming.names.setdefault(old, []).append(new)
        renaming.edits.append(_replaced(node, new))
    kept = {name.meant.value for name in written if name.start not in renamed}
    renaming.edits += _weights(source, renaming, kept)
    return renaming


def slug(name: str) -> str:
    """A name as lower-case letters, digits and hyphens; `grader` when nothing is left of it."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", letters)[:_LONGEST].strip("-") or "grader"


def _free(wanted: str, taken: set[str]) -> str:
    number, name = 1, wanted
    while name in taken:
        number += 1
        suffix = f"-{number}"
        name = wanted[: _LONGEST - len(suffix)].rstrip("-") + suffix
    return name


def _names(source: YamlText, node: Node | None, *, entries: bool = False) -> Iterator[Node]:
    """The names of all entries of `graders` anywhere in the file."""
    if node is None or node.kind not in ("mapping", "sequence"):
        return
    for item in node.items:
        name = item.get("name") if entries and item.kind == "mapping" else None
        if name is not None and name[1].meant.kind == "scalar":
            yield name[1]
        yield from _names(source, item)
    for key, value in node.entries:
        yield from _names(source, value, entries=key.meant.value == "graders")


def _replaced(node: Node, new: str) -> Edit:
    """The new name in the quotes of the old one."""
    anchor = f"&{node.anchor} " if node.anchor else ""
    quote = node.style if node.style in ("'", '"') else ""
    if not quote and (not _PLAIN.fullmatch(new) or new in _WORDS):
        quote = '"'
    return Edit(node.start, node.end, f"{anchor}{quote}{new}{quote}")


def _weights(source: YamlText, renaming: Renaming, kept: set[str]) -> Iterator[Edit]:
    """Every new name gets the weight of the old one."""
    weights = source.at("/scoring/weights")
    for old, names in renaming.names.items():
        found = None if weights is None or weights.meant.kind != "mapping" else weights.get(old)
        if weights is None or found is None:
            continue
        key, value = found
        added = list(names)
        if old not in kept:
            yield Edit(key.start, key.end, added.pop())
        text = source.text[value.body : value.end]
        for name in added:
            yield from insert_entry(source, weights.meant, f"{name}: {text}", key) or ()
