"""How each older spelling is rewritten: from a finding of vally to edits of the text it is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from vally import Diagnostic
from vally_command_scaffold.yaml_text import Edit, Node, YamlText, is_placeholder

Rewrite = Callable[[Diagnostic, YamlText], "list[Edit] | None"]
"""Edits for a finding, or None when nothing can be done to the text."""

_RENAMED = re.compile(r"'(?P<old>[^']*)' is deprecated, use '(?P<new>[^']*)'")
_SECONDS = re.compile(r"write (?P<number>\S+)s$")
_SERVER_TYPE = re.compile(r"type is missing, read as '(?P<type>\w+)'$")
_DEFAULT_SECONDS = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*=[0-9]+(?:\.[0-9]+)?\}")
# These end a plain scalar inside brackets.
_FLOW_MARKS = frozenset(",[]{}")


def _rename(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """A key, or a pointer that begins with one."""
    found, words = source.entry(diagnostic.pointer or ""), _RENAMED.search(diagnostic.message)
    if found is None or words is None:
        return None
    old, new = words["old"], words["new"]
    for node in found:
        if node is not None and node.kind == "scalar" and node.meant.value == old:
            start = node.body + _quote_length(node)
            return [Edit(start, start + len(old), new)]
    return None


def _add_unit(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """A number of seconds; one that is the default of a placeholder gets its unit there."""
    node, words = source.at(diagnostic.pointer or ""), _SECONDS.search(diagnostic.message)
    if node is None or words is None or node.meant.kind != "scalar":
        return None
    duration = f"{words['number']}s"
    content = node.meant.value
    if is_placeholder(content):
        end = node.end - _quote_length(node)
        whole = node.kind == "scalar" and _DEFAULT_SECONDS.fullmatch(content)
        return [Edit(end - 1, end - 1, "s")] if whole else None
    if node.kind == "alias":
        return [Edit(node.start, node.end, duration)]
    if node.tag is not None:
        anchor = f"&{node.anchor} " if node.anchor else ""
        return [Edit(node.start, node.end, f"{anchor}{duration}")]
    return [Edit(node.body + _quote_length(node), node.end - _quote_length(node), duration)]


def _set_aside(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """A key that has no effect becomes one that is ignored everywhere; nothing that was written is lost."""
    pointer = diagnostic.pointer or ""
    found, parent = source.entry(pointer), source.at(pointer.rpartition("/")[0])
    if found is None or parent is None or found[0] is None or found[0].kind != "scalar":
        return None
    key = found[0]
    taken = {name.meant.value for name, _ in parent.meant.entries}
    prefix = "x-"
    while prefix + key.meant.value in taken:
        prefix += "x-"
    start = key.body + _quote_length(key)
    return [Edit(start, start, prefix)]


def _unwrap_turn(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """`{prompt: text}` becomes the text."""
    found = source.at(diagnostic.pointer or "")
    node = None if found is None else found.meant
    if node is None or node.kind != "mapping" or len(node.entries) != 1:
        return None
    ((key, value),) = node.entries
    if node.flow:
        return [Edit(node.body, node.end, source.text[value.start : value.end])]
    between = source.text[key.end : value.start]
    # A comment between key and value stays where it is.
    end = key.end + between.index(":") + 1 if "#" in between else value.start
    return [Edit(key.start, end, "")]


def _quote_criterion(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """What YAML took for a mapping or a list is quoted as it stands."""
    node = source.at(diagnostic.pointer or "")
    if node is None or node.meant.kind not in ("mapping", "sequence"):
        return None
    text = source.text[node.meant.start : node.meant.end].strip()
    return [Edit(node.start, node.end, quoted(text))]


def _make_list(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """A text becomes a list of one."""
    key, node = source.entry(diagnostic.pointer or "") or (None, None)
    if node is None or node.meant.kind != "scalar":
        return None
    if node.style in ("|", ">"):
        return _block_item(key, node, source)
    text = source.text[node.start : node.end]
    if node.kind == "scalar" and not node.style:
        unsafe = is_placeholder(text) or not _FLOW_MARKS.isdisjoint(text)
        if unsafe and ("\n" in text or node.body != node.start):
            return None
        text = quoted(text) if unsafe else text
    return [Edit(node.start, node.end, f"[{text}]")]


def _block_item(key: Node | None, node: Node, source: YamlText) -> list[Edit] | None:
    """A block scalar keeps its lines: its header moves into an item below the key."""
    if key is None:
        return None
    start = node.start
    while source.text[start - 1] in " \t":
        start -= 1
    return [Edit(start, node.start, f"{source.line_end}{source.indent(key.start)}- ")]


def _add_server_type(diagnostic: Diagnostic, source: YamlText) -> list[Edit] | None:
    """The type that was inferred comes first in the mapping."""
    found, words = source.at(diagnostic.pointer or ""), _SERVER_TYPE.search(diagnostic.message)
    if found is None or words is None or found.meant.kind != "mapping":
        return None
    return insert_entry(source, found.meant, f"type: {words['type']}")


def insert_entry(source: YamlText, mapping: Node, entry: str, before: Node | None = None) -> list[Edit] | None:
    """Edits that put an entry in front of a key of a mapping, by default of the first."""
    if not mapping.entries:
        return None
    key = mapping.entries[0][0] if before is None else before
    if source.text[: key.start].endswith("? "):
        return None
    separator = ", " if mapping.flow else f"{source.line_end}{source.indent(key.start)}"
    return [Edit(key.start, key.start, f"{entry}{separator}")]


def quoted(text: str) -> str:
    """A text as a quoted scalar, on one line."""
    if not text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _quote_length(node: Node) -> int:
    return 1 if node.style in ("'", '"') else 0


REWRITES: Mapping[str, Rewrite] = MappingProxyType(
    {
        "bare-duration": _add_unit,
        "deprecated-key": _rename,
        "deprecated-turn-mapping": _unwrap_turn,
        "ignored-key": _set_aside,
        "ignored-stimulus-field": _set_aside,
        "mcp-type-missing": _add_server_type,
        "rubric-item-not-string": _quote_criterion,
        "scalar-for-list": _make_list,
    }
)
"""Rewrites by the code of the finding; names of graders are chosen together, see `grader_names`."""
