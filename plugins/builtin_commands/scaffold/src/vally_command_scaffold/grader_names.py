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
_SAID = re.compile(r"grader name '(?P<name>.*)' is (?:used twice|not a slug)", re.DOTALL)
_QUOTES = ("'", '"')


@dataclass(slots=True)
class Renaming:
    """Edits, and what was renamed: old name to its new ones; `left` are findings that cannot be settled so."""

    edits: list[Edit] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    left: list[Diagnostic] = field(default_factory=list)


def rename_graders(source: YamlText, findings: Sequence[Diagnostic], types: Iterable[str]) -> Renaming:
    """Give every grader that a finding is about a name of its own; `types` are words that names must not be."""
    renaming = Renaming()
    names = _meant_names(source, findings)
    taken = {*types, *names.values()}
    renamed: set[int] = set()
    for finding in findings:
        node = source.at(finding.pointer or "")
        if node is not None and node.start in renamed:
            continue
        if node is None or node.meant.kind != "scalar":
            renaming.left.append(finding)
            continue
        old = names.get(node.start, node.meant.value)
        new = _free(slug(old), taken)
        edit = _extended(node, old, new) if is_placeholder(node.meant.value) else _replaced(node, new)
        if edit is None:
            renaming.left.append(finding)
            continue
        taken.add(new)
        renamed.add(node.start)
        renaming.names.setdefault(old, []).append(new)
        renaming.edits.append(edit)
    kept = {name for start, name in names.items() if start not in renamed}
    renaming.edits += _weights(source, renaming, kept)
    return renaming


def _meant_names(source: YamlText, findings: Sequence[Diagnostic]) -> dict[int, str]:
    """The name of every grader by the offset where it stands; of placeholders only findings tell what they mean."""
    names = {node.start: node.meant.value for node in _names(source, source.root)}
    for finding in findings:
        said, node = _SAID.match(finding.message), source.at(finding.pointer or "")
        if said is None or node is None:
            continue
        places = [node.start, *(source.offset(place.line or 1, place.column or 1) for place in finding.related)]
        names.update({start: said["name"] for start in places if is_placeholder(names.get(start, ""))})
    return names


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
    quote = node.style if node.style in _QUOTES else ""
    if not quote and (not _PLAIN.fullmatch(new) or new in _WORDS):
        quote = '"'
    return Edit(node.start, node.end, f"{anchor}{quote}{new}{quote}")


def _extended(node: Node, old: str, new: str) -> Edit | None:
    """A name that is made from placeholders gets an end of its own; None when that does not make it the new one."""
    style, text = node.meant.style, node.meant.value
    if not new.startswith(old) or style not in ("", *_QUOTES):
        return None
    anchor = f"&{node.anchor} " if node.anchor else ""
    return Edit(node.start, node.end, f"{anchor}{style}{text}{new.removeprefix(old)}{style}")


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
