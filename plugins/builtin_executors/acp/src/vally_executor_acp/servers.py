"""MCP servers for the agent, and noticing those that fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import ExecutorError, McpServer

STDERR_BYTES = 2048
# The protocol knows no working directory and no agent says why a server ended. `cd` and two files do.
_WATCHED = 'cd "$1" || exit 1; shift; file=$1; shift; "$@" 2> "$file.stderr"; echo $? > "$file.exit"'


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
    """The servers of one trial, in the protocol's form; raises `ExecutorError` for what it cannot express."""

    def __init__(self, servers: Mapping[str, McpServer], *, scratch: Path, work_dir: Path) -> None:
        self._scratch = scratch
        self._work_dir = work_dir
        self.watched: list[WatchedServer] = []
        self.told = [self._told(number, server) for number, server in enumerate(servers.values())]

    @property
    def kinds(self) -> set[str]:
        """The kinds of transport that are needed."""
        return {str(item.get("type", "stdio")) for item in self.told}

    def failures(self) -> Iterator[tuple[WatchedServer, str]]:
        """Servers that have ended."""
        for server in self.watched:
            reason = server.failure
            if reason is not None:
                yield server, reason

    def _told(self, number: int, server: McpServer) -> dict[str, Any]:
        if server.tools is not None and tuple(server.tools) != ("*",):
            raise ExecutorError(
                f"executor 'acp' does not support 'tools' of MCP server '{server.name}'", code="unsupported-option"
            )
        if server.type != "stdio":
            headers = [{"name": name, "value": value} for name, value in server.headers.items()]
            return {"type": server.type, "name": server.name, "url": server.url, "headers": headers}
        command, args = self._command(number, server)
        env = [{"name": name, "value": value} for name, value in server.env.items()]
        return {"name": server.name, "command": command, "args": args, "env": env}

    def _command(self, number: int, server: McpServer) -> tuple[str, list[str]]:
        command = str(server.command)
        if os.name == "nt":
            return command, list(server.args)
        watched = WatchedServer(server.name, self._scratch / f"mcp-{number}")
        self.watched.append(watched)
        directory = str(server.cwd or self._work_dir)
        return "/bin/sh", ["-c", _WATCHED, "sh", directory, str(watched.base), command, *server.args]


def server_failed(name: str, reason: str) -> ExecutorError:
    """A server that did not come up."""
    return ExecutorError(f"MCP server '{name}' failed: {reason}", code="mcp-server-failed")
