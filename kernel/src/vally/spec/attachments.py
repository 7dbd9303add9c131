"""`attachments` of a stimulus."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from vally.model.evalspec import Attachment
from vally.spec import paths
from vally.spec.diagnostics import Place
from vally.spec.loading import Loading, shown_path
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.sections import Items, Key, Table, read_section, wrong_type, wrong_value
from vally.spec.shapes import Integer, ListOf, RawShape, Text

MAX_BYTES = 32 * 2**20
ATTACHMENTS = ListOf(RawShape("attachment"))
ATTACHMENT = Table(
    "attachment",
    {
        "path": Key(Text(), "file relative to the spec", required=True),
        "name": Key(Text(), "name the agent sees; default the base name"),
        "mimeType": Key(Text(), "default by extension"),
        "turn": Key(Integer(0), "turn with whose message it is sent", default=0),
    },
)


def read_attachments(
    loading: Loading, items: Items, place: Place, turns: int
) -> tuple[list[Attachment], list[dict[str, Any]]]:
    """The attachments, and as records show them."""
    actual, shown = [], []
    for _, node, at in loading.collector.until_full(items.placed(place)):
        read = _attachment(loading, node, at, turns)
        if read is not None:
            actual.append(read[0])
            shown.append(read[1])
    return actual, shown


def _attachment(loading: Loading, node: Node, place: Place, turns: int) -> tuple[Attachment, dict[str, Any]] | None:
    if isinstance(node, ScalarNode):
        if isinstance(Text().read(node, place, loading.collector), str):
            return _finished(loading, node, place, {})
        return None
    if not isinstance(node, MappingNode):
        wrong_type(node, place, loading.collector, "a path or a mapping")
        return None
    section = read_section(node, ATTACHMENT, place, loading.collector)
    if section is None or section.is_broken(*section.keys) or "path" not in section.values:
        return None
    if turns and section.get("turn", 0) >= turns:
        wrong_value(section.at("turn"), place.key("turn"), loading.collector, f"a turn below {turns}")
        return None
    path_node = section.at("path")
    assert isinstance(path_node, ScalarNode)
    return _finished(loading, path_node, place.key("path"), section.values)


def _finished(
    loading: Loading, node: ScalarNode, place: Place, values: dict[str, Any]
) -> tuple[Attachment, dict[str, Any]] | None:
    path = loading.resolve(node, place)
    shown = node.written or node.text
    if not paths.is_file(path):
        loading.collector.add("attachment-not-found", node, place, file=shown)
        return None
    size = path.stat().st_size
    if size > MAX_BYTES:
        loading.collector.add("attachment-too-large", node, place, file=shown, size=size, limit=MAX_BYTES)
        return None
    name = values.get("name", path.name)
    kind = values.get("mimeType") or _mime_type(path)
    attachment = Attachment(path=path, name=name, mime_type=kind, turn=values.get("turn", 0))
    record = {"path": shown_path(node, path), "name": name, "mimeType": kind, "turn": attachment.turn}
    return attachment, record


def _mime_type(path: Path) -> str:
    """By extension, from the table of the standard library only: a machine's own tables would differ."""
    kind, _ = mimetypes.MimeTypes(filenames=()).guess_type(path.name, strict=False)
    return kind or "application/octet-stream"
