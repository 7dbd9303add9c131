"""`mcpServers` of an environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vally.model.evalspec import McpServer
from vally.spec.diagnostics import Collector, Place
from vally.spec.git_sources import check_url
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.paths import absolute
from vally.spec.plain_values import plain_value
from vally.spec.scalars import scalar_value, shown
from vally.spec.sections import INVALID, Key, Section, Table, read_section
from vally.spec.shapes import Choice, DurationShape, ListOf, MapOf, Text, TextOfScalar

_TYPES = ("stdio", "http", "sse")
_WORKSPACE = "${workspace}"
_COMMON = {
    "type": Key(Choice(_TYPES), "how it is reached"),
    "timeout": Key(DurationShape(), "limit of one call"),
    "tools": Key(ListOf(Text()), "tools to offer; default all"),
}


ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_name(key: ScalarNode, place: Place, collector: Collector) -> bool:
    if ENV_NAME.fullmatch(key.text):
        return True
    expected = "a name of letters, digits and _"
    collector.add("invalid-value", key, place.key(key.text), key=place.label, value=f"'{key.text}'", expected=expected)
    return False


STDIO = Table(
    "mcpServers",
    {
        **_COMMON,
        "command": Key(Text(), "program", required=True),
        "args": Key(ListOf(Text(blank=True)), "its arguments"),
        "env": Key(MapOf(TextOfScalar(), check=_check_name, names=ENV_NAME.pattern), "environment variables"),
        "cwd": Key(Text(), "working directory"),
    },
)
REMOTE = Table(
    "mcpServers",
    {
        **_COMMON,
        "url": Key(Text(), "http or https URL", required=True),
        "headers": Key(MapOf(Text(blank=True)), "request headers"),
    },
)


def check_servers(servers: Mapping[str, Any], place: Place, collector: Collector) -> dict[str, Section | None]:
    """Check the servers; a null one removes an inherited one."""
    return {
        name: None if node is None else _server(name, node, place.key(name), collector)
        for name, node in servers.items()
        if node is None or isinstance(node, Node)
    }


def _server(name: str, node: Node, place: Place, collector: Collector) -> Section | None:
    kind = _kind(name, node, place, collector)
    has_url = isinstance(node, MappingNode) and node.get("url") is not None
    remote = kind in ("http", "sse") or (kind != "stdio" and has_url)
    section = read_section(node, REMOTE if remote else STDIO, place, collector)
    if section is None or section.is_broken(*section.keys):
        return None
    if kind == "stdio":
        return section if "command" in section.values else None
    if "url" not in section.values or not check_url(section.at("url"), section.get("url"), place.key("url"), collector):
        return None
    section.values.setdefault("type", kind)
    return section


def _kind(name: str, node: Node, place: Place, collector: Collector) -> str:
    """The type of a server, taken from `command` or `url` when it is missing."""
    if not isinstance(node, MappingNode):
        return "stdio"
    written = node.get("type")
    if isinstance(written, ScalarNode) and scalar_value(written) is not None:
        return written.text
    kind = "http" if node.get("url") is not None and node.get("command") is None else "stdio"
    if node.get("url") is not None or node.get("command") is not None:
        collector.add("mcp-type-missing", node, place, name=name, type=kind)
    return kind


def read_servers(
    loading: Loading, servers: Mapping[str, Any], place: Place
) -> tuple[dict[str, McpServer | None], dict[str, Any]]:
    """The servers by name, and as records show them."""
    actual: dict[str, McpServer | None] = {}
    shown_servers: dict[str, Any] = {}
    sections = check_servers(servers, place, loading.collector)
    for name, section in sections.items():
        if section is None:
            if servers[name] is None:
                actual[name] = shown_servers[name] = None
            continue
        actual[name] = _dataclass(name, section)
        shown_servers[name] = _shown(section)
    return actual, shown_servers


def _dataclass(name: str, section: Section) -> McpServer:
    values = dict(section.values)
    if "cwd" in values and section.at("cwd").source.base != section.at("command").source.base:
        # A variant may set either alone, relative to its own file.
        values["cwd"] = _absolute_cwd(section.at("cwd"), values["cwd"])
    timeout = values.pop("timeout", None)
    tools = values.pop("tools", None)
    return McpServer(
        name=name,
        type=values.pop("type", "stdio"),
        args=tuple(values.pop("args", ())),
        timeout_ms=timeout.ms if timeout else None,
        tools=None if tools is None else tuple(tools),
        base_dir=section.at("command").source.base,
        **values,
    )


def _shown(section: Section) -> dict[str, Any]:
    plain = plain_value(section.node, written=True)
    record: dict[str, Any] = {"type": section.get("type", "stdio")}
    if plain is not INVALID:
        record.update({key: value for key, value in plain.items() if key in section.values})
    for key in ("env", "headers"):
        if key in section.values:
            record[key] = _texts(section.written[key], section.values[key])
    if "timeout" in section.values:
        record["timeout"] = section.values["timeout"].text
    cwd = section.written.get("cwd")
    if isinstance(cwd, ScalarNode) and cwd.written is None:
        record["cwd"] = _absolute_cwd(cwd, cwd.text)
    return record


def _absolute_cwd(node: Node, text: str) -> str:
    return text if text.startswith(_WORKSPACE) else absolute(node.source.base, text).as_posix()


def _texts(node: Node, values: Mapping[str, str]) -> dict[str, str]:
    texts = dict(values)
    for key, item in node.entries if isinstance(node, MappingNode) else ():
        if key.text in values and isinstance(item, ScalarNode):
            texts[key.text] = shown(item)
    return texts
