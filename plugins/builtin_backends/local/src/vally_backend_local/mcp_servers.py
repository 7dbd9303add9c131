"""Where the MCP servers of a stimulus start: working directory and command made absolute for one trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vally import McpServer

WORKSPACE = "${workspace}"


def resolve_servers(
    servers: Mapping[str, McpServer], *, spec_dir: Path, work_dir: Path, workspace: Path
) -> dict[str, McpServer]:
    """Resolve the stdio servers: against their `cwd`, else the first of the three directories that has what they name.

    `work_dir` is the second base, the directory of the declaring file the first, the workspace the last.
    """
    return {
        name: _resolve(server, spec_dir, work_dir, workspace) if server.type == "stdio" else server
        for name, server in servers.items()
    }


def _resolve(server: McpServer, spec_dir: Path, work_dir: Path, workspace: Path) -> McpServer:
    declared_in = server.base_dir or spec_dir
    if server.cwd is not None:
        base = declared_in / server.cwd.replace(WORKSPACE, str(workspace))
    else:
        base = _choose_base(server, (declared_in, work_dir, workspace))
    return replace(server, cwd=str(base), command=_absolute(server.command, base))


def _choose_base(server: McpServer, bases: Sequence[Path]) -> Path:
    named = _named_path(server)
    if named is None:
        return bases[0]
    return next((base for base in bases if (base / named).exists()), bases[0])


def _named_path(server: McpServer) -> str | None:
    """The command when it is a path, else the first argument that looks like a relative one."""
    if server.command is not None and _has_separator(server.command):
        return server.command
    relative = (arg for arg in server.args if _has_separator(arg) and not arg.startswith("-"))
    return next((arg for arg in relative if not Path(arg).is_absolute()), None)


def _absolute(command: str | None, base: Path) -> str | None:
    if command is None or not _has_separator(command):
        return command
    return str(base / command)


def _has_separator(text: str) -> bool:
    return "/" in text or "\\" in text
