"""MCP servers for the agent, and noticing those that fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import ExecutorError, McpServer, McpWatch


class Servers:
    """The servers of one trial; raises `ExecutorError` for what the agent cannot be told.

    `told` is what it is told with its session. With `as_file` they are in a file instead, at `file`. `watch` tells what
    becomes of them.
    """

    def __init__(self, servers: Mapping[str, McpServer], *, scratch: Path, work_dir: Path, as_file: bool) -> None:
        self._scratch = scratch
        self.watch = McpWatch(scratch)
        listed = [self.watch.put_before(server, work_dir) for server in servers.values()]
        self.told = [] if as_file else [self._told(server) for server in listed]
        self.kinds = {str(item.get("type", "stdio")) for item in self.told}
        self.file = self._written(listed) if as_file and listed else None

    def _told(self, server: McpServer) -> dict[str, Any]:
        if server.tools is not None and tuple(server.tools) != ("*",):
            raise ExecutorError(
                f"this agent cannot be told 'tools' of MCP server '{server.name}'", code="unsupported-option"
            )
        if server.type != "stdio":
            return {"type": server.type, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
        return {"name": server.name, "command": server.command, "args": list(server.args), "env": _pairs(server.env)}

    def _written(self, servers: Sequence[McpServer]) -> Path:
        document = {"mcpServers": {server.name: _entry(server) for server in servers}}
        path = self._scratch / "mcp.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


def _entry(server: McpServer) -> dict[str, Any]:
    tools = ["*"] if server.tools is None else list(server.tools)
    common: dict[str, Any] = {"type": server.type, "tools": tools}
    if server.timeout_ms is not None:
        common["timeout"] = server.timeout_ms
    if server.type != "stdio":
        return {**common, "url": server.url, "headers": dict(server.headers)}
    return {**common, "command": server.command, "args": list(server.args), "env": dict(server.env)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
