"""`artifacts`: which files of a workspace are kept, of the root and of a stimulus."""

from __future__ import annotations

from typing import Any

from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Node
from vally.spec.sections import INVALID, Items, Key, Section, Table, wrong_value
from vally.spec.shapes import ListOf, Text
from vally.text.globs import InvalidGlob, compile_glob, leaves_root


class WorkspaceGlobShape:
    """A glob over the files of a workspace."""

    def read(self, node: Node, place: Place, collector: Collector) -> Any:
        pattern = Text().read(node, place, collector)
        if pattern is INVALID:
            return INVALID
        try:
            compile_glob(pattern, dotfiles=True)
        except InvalidGlob as error:
            collector.add("invalid-glob", node, place, pattern=pattern, reason=error.reason)
            return INVALID
        if leaves_root(pattern):
            return wrong_value(node, place, collector, "a path or glob inside the workspace")
        return pattern


_GLOBS = Key(ListOf(WorkspaceGlobShape(), single="warning"), "globs relative to the workspace")
ARTIFACTS = Table("artifacts", {"include": _GLOBS, "exclude": _GLOBS})


def merge_artifacts(collector: Collector, root: Section | None, own: Section | None) -> dict[str, tuple[str, ...]]:
    """Globs of root and stimulus: appended without duplicates, an explicit empty list clears."""
    merged: dict[str, tuple[str, ...]] = {}
    for section in (root, own):
        for key in ("include", "exclude"):
            globs: Items | None = section.get(key) if section is not None else None
            if globs is not None:
                merged[key] = tuple(dict.fromkeys((*merged.get(key, ()), *globs))) if globs else ()
    innermost = own if own is not None and own.values else root
    if merged.get("exclude") and not merged.get("include") and innermost is not None:
        collector.add("artifacts-exclude-only", innermost.at("exclude"), innermost.place.key("exclude"))
    return merged
