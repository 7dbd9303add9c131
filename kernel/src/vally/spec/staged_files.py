"""`files` of an environment: what is copied into the workspace or the assets."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import StagedFile
from vally.spec import paths
from vally.spec.diagnostics import Collector, Place
from vally.spec.loading import Loading, shown_path
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.sections import Items, Key, Section, Table, read_section
from vally.spec.shapes import Choice, Text

if TYPE_CHECKING:
    from pathlib import Path

_DRIVE = re.compile(r"[A-Za-z]:")
FILE = Table(
    "environment.files",
    {
        "src": Key(Text(), "file or directory to copy", required=True),
        "dest": Key(Text(), "relative path inside the target", required=True),
        "dest_root": Key(Choice(("workspace", "assets")), "where it goes", default="workspace"),
    },
    missing="environment-file-missing-field",
)


@dataclass(frozen=True, slots=True)
class FileShape:
    """One item whose shape is right; `dest` is normalised."""

    section: Section
    dest: str
    keep_name: bool

    @property
    def dest_root(self) -> Any:
        """The target root."""
        return self.section.get("dest_root", "workspace")


def check_files(items: Items, place: Place, collector: Collector) -> list[FileShape]:
    """Check everything about the items that does not depend on the file system; those whose shape is right."""
    placed = collector.until_full(items.placed(place))
    shapes = [_shape(node, at, collector) for _, node, at in placed]
    return [shape for shape in shapes if shape is not None]


def _shape(node: Node, place: Place, collector: Collector) -> FileShape | None:
    if not isinstance(node, MappingNode):
        if not (isinstance(node, ScalarNode) and node.unresolved):
            hint = "write {src: …, dest: …}"
            collector.add("environment-file-missing-field", node, place, hint=hint, where=f"{place.label}: ", key="src")
        return None
    section = read_section(node, FILE, place, collector)
    if section is None or "src" not in section.values or "dest" not in section.values:
        return None
    dest = _dest(section, place, collector)
    return None if dest is None else FileShape(section, *dest)


def _dest(section: Section, place: Place, collector: Collector) -> tuple[str, bool] | None:
    node = section.at("dest")
    written = section.get("dest")
    if "\\" in written:
        collector.add("backslash-path", node, place.key("dest"), path=written)
    text = written.replace("\\", "/")
    normal = posixpath.normpath(text)
    first = normal.split("/", 1)[0]
    if text.startswith("/") or _DRIVE.match(text) or first == ".." or first.lower() == ".git":
        collector.add("environment-file-bad-dest", node, place.key("dest"), where=place.label, dest=written)
        return None
    return normal, normal == "." or text.endswith("/")


def read_files(loading: Loading, items: Items, place: Place) -> tuple[list[StagedFile], list[dict[str, Any]]]:
    """The items, and as records show them."""
    actual, shown = [], []
    shapes = check_files(items, place, loading.collector)
    for shape in loading.collector.until_full(shapes):
        source = _source(loading, shape, shape.section.place)
        if source is None:
            continue
        actual.append(StagedFile(src=source, dest=shape.dest, dest_root=shape.dest_root, keep_name=shape.keep_name))
        record = {"src": shown_path(shape.section.at("src"), source), "dest": shape.section.get("dest")}
        if shape.dest_root != "workspace":
            record["dest_root"] = shape.dest_root
        shown.append(record)
    return actual, shown


def _source(loading: Loading, shape: FileShape, place: Place) -> Path | None:
    node = shape.section.at("src")
    assert isinstance(node, ScalarNode)
    path = loading.resolve(node, place.key("src"))
    shown = node.written or node.text
    if not paths.exists(path):
        loading.collector.add("environment-file-not-found", node, place.key("src"), where=place.label, file=shown)
        return None
    if PurePath(loading.real_path(loading.source.path)).is_relative_to(loading.real_path(path)):
        loading.collector.add("environment-file-exposes-spec", node, place.key("src"), file=shown)
    return path
