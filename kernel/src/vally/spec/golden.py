"""Golden inputs of a stimulus: what is known to solve its task."""

from __future__ import annotations

import json
import re
from typing import Any

from vally.spec import paths
from vally.spec.diagnostics import Collector, Place
from vally.spec.files import SPEC_BYTES
from vally.spec.loading import Loading, shown_path
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.sections import INVALID, Key, Section, Table, read_section, wrong_type
from vally.spec.shapes import DurationShape, ListOf, MapOf, Opaque, Text, TextOfScalar

GOLDEN_TEXT = Table("golden input", {"path": Key(Text(), "file"), "inline": Key(Opaque(), "the content itself")})
GOLDEN_COMMAND = Table(
    "golden_command",
    {
        "command": Key(Text(), "program, or shell line without args", required=True),
        "args": Key(ListOf(Text(blank=True)), "arguments; run without a shell"),
        "timeout": Key(DurationShape(), "limit", default="60s"),
        "env": Key(MapOf(TextOfScalar()), "environment variables"),
    },
)
_HUNK = re.compile(r"(?m)^(?:@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|diff --git |GIT binary patch|Binary files )")


def read_golden(loading: Loading, section: Section) -> tuple[dict[str, Any], dict[str, Any]]:
    """The golden inputs of a stimulus by key, and as records show them."""
    actual: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for key in ("golden_patch", "golden_trajectory"):
        if key in section.values:
            read = _content(loading, section.get(key), section.place.key(key), key)
            if read is not None:
                actual[key], shown[key] = read
    if "golden_command" in section.values:
        command = _command(section.get("golden_command"), section.place.key("golden_command"), loading.collector)
        if command is not None:
            actual["golden_command"] = shown["golden_command"] = command
    if "golden_patch" in section.written and "golden_command" in section.written:
        loading.collector.add("golden-conflict", section.keys["golden_command"], section.place.key("golden_command"))
    return actual, shown


def _content(loading: Loading, node: Node, place: Place, key: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    collector = loading.collector
    section = read_section(node, GOLDEN_TEXT, place, collector)
    if section is None or section.is_broken("path", "inline"):
        return None
    if len(section.written) != 1:
        collector.add("invalid-golden-input", node, place, key=key, reason="exactly one of path and inline is required")
        return None
    kind = "inline" if "inline" in section.values else "path"
    at, where = section.at(kind), place.key(kind)
    if kind == "inline":
        content = section.get("inline")
        record: tuple[dict[str, Any], dict[str, Any]] = ({"inline": content}, {"inline": content})
    else:
        found = _file(loading, at, where, key)
        if found is None:
            return None
        content, record = found
    reason = _patch_problem(content) if key == "golden_patch" else _trajectory_problem(content)
    if reason is not None:
        collector.add("invalid-golden-input", at, where, key=key, reason=reason)
        return None
    return record


def _file(
    loading: Loading, node: Node, place: Place, key: str
) -> tuple[str, tuple[dict[str, Any], dict[str, Any]]] | None:
    assert isinstance(node, ScalarNode)
    path = loading.resolve(node, place)
    if not paths.is_file(path):
        loading.collector.add("golden-file-not-found", node, place, key=key, file=node.written or node.text)
        return None
    try:
        with path.open("rb") as file:
            # Trajectories can be long; a look at the start tells text from anything else.
            content = file.read(16 * SPEC_BYTES).decode("utf-8", "replace")
    except OSError as error:
        loading.collector.add("invalid-golden-input", node, place, key=key, reason=error.strerror or str(error))
        return None
    return content, ({"path": str(path)}, {"path": shown_path(node, path)})


def _patch_problem(content: object) -> str | None:
    if not isinstance(content, str):
        return "a unified diff must be a string"
    return None if _HUNK.search(content) else "not a unified diff"


def _trajectory_problem(content: object) -> str | None:
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError) as error:
            return f"not JSON: {str(error).splitlines()[0]}"
    return None if isinstance(content, dict) else "an ATIF trajectory must be a JSON object"


def _command(node: Node, place: Place, collector: Collector) -> Any:
    if isinstance(node, ScalarNode):
        line = Text().read(node, place, collector)
        return None if line is INVALID else line
    if not isinstance(node, MappingNode):
        wrong_type(node, place, collector, "a string or a mapping")
        return None
    section = read_section(node, GOLDEN_COMMAND, place, collector)
    if section is None or section.is_broken(*section.keys) or "command" not in section.values:
        return None
    command = dict(section.values)
    if "args" in command:
        command["args"] = list(command["args"])
    if "timeout" in command:
        command["timeout"] = command["timeout"].text
    return command
