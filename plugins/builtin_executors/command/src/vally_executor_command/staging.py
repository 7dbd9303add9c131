"""Files that an agent is given: skills in the workspace, prompt and MCP servers in the trial's own directory."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vally import McpServer, Skill, segment

LONGEST_FILE = 4 * 2**20
# Absent flags are those of Windows.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def copy_skills(skills: Iterable[Skill], target: Path) -> None:
    """Copy each skill's directory below `target`; one that is there already stays as it is."""
    for skill in skills:
        source, place = skill.path.parent, target / segment(skill.name)
        if source.resolve() != place.resolve():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)


def write_private(path: Path, text: str) -> Path:
    """Write a file that only this user can read, in the place of whatever an agent may have put there.

    A link would be followed, and a pipe would be waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, _WRITE, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
    return path


def read_text(path: Path) -> str:
    """A file that an agent may have written; empty when there is none that can be read."""
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(LONGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def mcp_document(servers: Mapping[str, McpServer]) -> str:
    """The usual JSON form of MCP servers."""
    return json.dumps({"mcpServers": {name: _server(server) for name, server in servers.items()}}, indent=2)


def _server(server: McpServer) -> dict[str, Any]:
    if server.type == "stdio":
        told = {"command": server.command, "args": list(server.args), "env": dict(server.env), "cwd": server.cwd}
    else:
        told = {"url": server.url, "headers": dict(server.headers)}
    tools = None if server.tools is None else list(server.tools)
    facts = {"type": server.type, **told, "tools": tools, "timeout": server.timeout_ms}
    return {key: value for key, value in facts.items() if value is not None}
