"""What the runtime tells of a session beside the work of the agent: its skills, its MCP servers, failing calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from vally import ExecutorError, McpServer, Skill
from vally_executor_copilot_sdk.arguments import mcp_timeout_ms
from vally_executor_copilot_sdk.native import Native, of_main_agent

SKILLS_LIMIT_S = 10.0
REASON_BYTES = 2048
_BROKEN = frozenset({"failed", "needs-auth", "disabled", "not_configured"})


class SessionFacts:
    """Collects them from the events of one session; `warn` is told what does not end it."""

    def __init__(self, servers: Mapping[str, McpServer], skills: Sequence[Skill], warn: Callable[[str], None]) -> None:
        self._servers = servers
        self._skills = skills
        self._warn = warn
        self._connected: set[str] = set()
        self._listed: list[Mapping[str, Any]] | None = None
        self._changed = anyio.Event()
        self._mcp_error: ExecutorError | None = None
        self._since = time.monotonic()
        self.model: str | None = None
        self.model_retries = 0
        self.transport_failed = False
        self.finish_reason: str | None = None

    def begin(self) -> None:
        """The session is about to be made; the time that servers have to come up starts."""
        self._since = time.monotonic()

    def feed(self, event: Native) -> None:
        """Take one event."""
        kind, data = event["type"], event["data"]
        if kind == "session.mcp_server_status_changed":
            self._server_changed(data)
        elif kind == "session.skills_loaded" and isinstance(data.get("skills"), list):
            self._listed = [item for item in data["skills"] if isinstance(item, dict)]
            self._notify()
        elif kind == "session.start" and of_main_agent(event):
            self.model = data.get("selectedModel")
        elif kind == "assistant.turn_retry":
            self.model_retries += 1
        elif kind == "model.call_failure":
            self.transport_failed = data.get("failureKind") == "transport"
        elif kind == "assistant.usage":
            self.transport_failed = False
            if of_main_agent(event):
                self.finish_reason = data.get("finishReason")

    @property
    def skill_names(self) -> list[str]:
        """Names of the offered skills that the agent has, sorted."""
        paths = {_real(item.get("path")) for item in self._enabled()}
        return sorted(skill.name for skill in self._skills if _real(str(skill.path)) in paths)

    @property
    def other_skills(self) -> list[str]:
        """Names of skills that the agent has beside those offered, sorted."""
        offered = {_real(str(skill.path)) for skill in self._skills}
        return sorted(str(item.get("name")) for item in self._enabled() if _real(item.get("path")) not in offered)

    async def wait_mcp_failure(self) -> ExecutorError:
        """Return once an MCP server cannot be used."""
        while self._mcp_error is None:
            waiting = [name for name in self._servers if name not in self._connected]
            limits = [mcp_timeout_ms(self._servers[name]) / 1000 for name in waiting]
            left = min(limits, default=float("inf")) - (time.monotonic() - self._since)
            with anyio.move_on_after(max(0.0, left)) as scope:
                await self._changed.wait()
            if scope.cancelled_caught and waiting:
                late = min(waiting, key=lambda name: mcp_timeout_ms(self._servers[name]))
                limit = mcp_timeout_ms(self._servers[late]) / 1000
                self._mcp_error = mcp_error(late, f"it did not come up within {limit:g}s")
        return self._mcp_error

    async def wait_ready(self) -> None:
        """Return when all MCP servers and offered skills are there.

        Raises `ExecutorError` for a skill that the runtime did not take. Servers that fail are for
        `wait_mcp_failure`.
        """
        while len(self._connected) < len(self._servers):
            await self._changed.wait()
        if not self._skills:
            return
        with anyio.move_on_after(SKILLS_LIMIT_S):
            while self._listed is None:
                await self._changed.wait()
        names = self.skill_names
        missing = [skill for skill in self._skills if skill.name not in names]
        if missing:
            skill = missing[0]
            disabled = any(_real(item.get("path")) == _real(str(skill.path)) for item in self._listed or ())
            reason = (
                "it is disabled" if disabled else "the agent did not take it; check the frontmatter of its SKILL.md"
            )
            raise ExecutorError(f"skill '{skill.name}' was not loaded: {reason}", code="skill-not-loaded")

    def _server_changed(self, data: Mapping[str, Any]) -> None:
        name, status = str(data.get("serverName")), data.get("status")
        if name not in self._servers:
            return
        if status == "connected":
            self._connected.add(name)
        elif status in _BROKEN:
            reason = str(data.get("error") or f"its state is {status}")
            if name in self._connected:
                self._warn(f"MCP server '{name}' ended while the agent worked: {reason.splitlines()[0]}")
            elif self._mcp_error is None:
                self._mcp_error = mcp_error(name, reason)
        self._notify()

    def _enabled(self) -> list[Mapping[str, Any]]:
        return [item for item in self._listed or () if item.get("enabled") is not False]

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def mcp_error(name: str, reason: str) -> ExecutorError:
    """The error of a server that cannot be used; the runtime's reason holds the end of the server's stderr."""
    return ExecutorError.of_mcp_server(name, reason[-REASON_BYTES:])


def _real(path: object) -> str:
    return os.path.realpath(path) if isinstance(path, str) and path else ""
