"""MCP servers for the agent, and noticing those that fail."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from vally import ExecutorError, McpServer

STDERR_BYTES = 2048
POLL_S = 0.2
# The protocol knows no working directory and no agent says why a server ended. `cd` and two files do.
_WATCHED = 'cd "$1" || exit 1; shift; file=$1; shift; "$@" 2>> "$file.stderr"; echo $? > "$file.exit"'


@dataclass(frozen=True, slots=True)
class WatchedServer:
    """A server on this machine and the files that tell of it."""

    name: str
    base: Path

    @property
    def failure(self) -> str | None:
        """Why it has ended, with its last words; None while it runs."""
        try:
            code = self.base.with_suffix(".exit").read_text().strip()
        except OSError:
            return None
        try:
            words = self.base.with_suffix(".stderr").read_bytes()[-STDERR_BYTES:].decode("utf-8", "replace").strip()
        except OSError:
            words = ""
        return f"it ended with exit code {code}" + (f": {words}" if words else "")


class Servers:
    """The servers of one trial; raises `ExecutorError` for what the agent cannot be told.

    `told` is what it is told with its session. With `as_file` they are in a file instead, at `file`.
    """

    def __init__(self, servers: Mapping[str, McpServer], *, scratch: Path, work_dir: Path, as_file: bool) -> None:
        self._scratch = scratch
        self._work_dir = work_dir
        self.watched: list[WatchedServer] = []
        listed = list(servers.values())
        self.told = [] if as_file else [self._told(number, server) for number, server in enumerate(listed)]
        self.kinds = {str(item.get("type", "stdio")) for item in self.told}
        self.file = self._written(listed) if as_file and listed else None

    def failure(self) -> ExecutorError | None:
        """The error of the first server that has ended; None while all run."""
        for server in self.watched:
            reason = server.failure
            if reason is not None:
                return ExecutorError(f"MCP server '{server.name}' failed: {reason}", code="mcp-server-failed")
        return None

    def _told(self, number: int, server: McpServer) -> dict[str, Any]:
        if server.tools is not None and tuple(server.tools) != ("*",):
            raise ExecutorError(
                f"this agent cannot be told 'tools' of MCP server '{server.name}'", code="unsupported-option"
            )
        if server.type != "stdio":
            return {"type": server.type, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
        command, args = self._command(number, server)
        return {"name": server.name, "command": command, "args": args, "env": _pairs(server.env)}

    def _written(self, servers: Sequence[McpServer]) -> Path:
        document = {"mcpServers": {server.name: self._entry(number, server) for number, server in enumerate(servers)}}
        path = self._scratch / "mcp.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _entry(self, number: int, server: McpServer) -> dict[str, Any]:
        tools = ["*"] if server.tools is None else list(server.tools)
        common: dict[str, Any] = {"type": server.type, "tools": tools}
        if server.timeout_ms is not None:
            common["timeout"] = server.timeout_ms
        if server.type != "stdio":
            return {**common, "url": server.url, "headers": dict(server.headers)}
        command, args = self._command(number, server)
        return {**common, "command": command, "args": args, "env": dict(server.env)}

    def _command(self, number: int, server: McpServer) -> tuple[str, list[str]]:
        command = str(server.command)
        if os.name == "nt":
            return command, list(server.args)
        watched = WatchedServer(server.name, self._scratch / f"mcp-{number}")
        self.watched.append(watched)
        directory = str(server.cwd or self._work_dir)
        return "/bin/sh", ["-c", _WATCHED, "sh", directory, str(watched.base), command, *server.args]


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


class ServerWatch:
    """Ends a prompt when an MCP server of the trial has ended, which the agent would only leave out."""

    def __init__(self, servers: Servers, scope: anyio.CancelScope) -> None:
        self._servers = servers
        self._scope = scope
        self.error: ExecutorError | None = None

    async def run(self) -> None:
        """Look again and again; there is nothing to wait for."""
        while self._servers.watched and not await self.look():
            await anyio.sleep(POLL_S)
        if self.error is not None:
            self._scope.cancel()

    async def look(self) -> bool:
        """Whether a server has ended."""
        self.error = await anyio.to_thread.run_sync(self._servers.failure)
        return self.error is not None

    async def look_twice(self) -> None:
        """At the end of a prompt: a server that just ended needs a moment to say so."""
        if self._servers.watched and not await self.look():
            await anyio.sleep(POLL_S)
            await self.look()
