"""Gemini CLI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from vally import McpServer
from vally_executor_command.profiles.profile import (
    NO_KEY,
    Additions,
    Profile,
    Trial,
    needs_private_home,
    refuse_above,
    unsupported,
)
from vally_executor_command.staging import write_private

_MCP_ISSUES = "MCP issues detected"
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class Gemini(Profile):
    """Gemini reads context files up to the root of a repository and `.env` files up to the root of the disk."""

    name = "gemini"
    package = "@google/gemini-cli"
    command = ("gemini", ("--prompt={prompt}",), "--yolo", "--output-format", "stream-json", "-m", "{model}")
    continue_command = (*command, "-r", "{session_id}")
    skills_dir = ".gemini/skills"
    mcp_by_file = True
    families: ClassVar[Mapping[str, tuple[str, ...]]] = {"gemini": ()}
    needs_model = True
    gaps = (
        "results of some tools have no text, and shell results no exit code",
        "a turn that was stopped has no usage",
        "thoughts are not told",
    )

    def add(self, trial: Trial) -> Additions:
        """Settings in the trial's home; the address of the provider in the environment."""
        env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if trial.home is not None:
            refuse_above(self, trial.work_dir, (".gemini/.env",))
            nowhere = trial.trial_dir / "no-system-settings.json"
            env |= {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(nowhere), "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(nowhere)}
            write_private(trial.home / ".gemini" / "settings.json", json.dumps(_settings(trial), indent=2))
        elif trial.servers or trial.provider is not None:
            # Both stand in its settings, the provider because the way to log in does.
            needs_private_home(self, trial, "MCP servers" if trial.servers else "a provider")
        if trial.provider is not None:
            env["GOOGLE_GEMINI_BASE_URL"] = trial.provider.base_url or ""
            env["GEMINI_API_KEY"] = trial.secret or NO_KEY
            if trial.provider.bearer_token is not None:
                env["GEMINI_API_KEY_AUTH_MECHANISM"] = "bearer"
            if trial.provider.headers:
                env["GEMINI_CLI_CUSTOM_HEADERS"] = _headers(self, trial.provider.headers)
        return Additions(env=env)

    def failed_servers(self, stderr: str, names: Iterable[str]) -> Mapping[str, str]:
        """The agent tells that there are issues, not with which server."""
        if _MCP_ISSUES not in stderr:
            return {}
        return {" or ".join(names): "the agent reports that a server did not come up, and not why"}


def _settings(trial: Trial) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "context": {"memoryBoundaryMarkers": []},
        "advanced": {"ignoreLocalEnv": True},
        "mcpServers": {name: _server(server) for name, server in trial.servers.items()},
    }
    if trial.provider is not None or any(key in trial.env for key in _KEYS):
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    return settings


def _server(server: McpServer) -> dict[str, Any]:
    if server.type == "stdio":
        told: dict[str, Any] = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        if server.cwd is not None:
            told["cwd"] = server.cwd
    else:
        told = {"httpUrl" if server.type == "http" else "url": server.url, "headers": dict(server.headers)}
    if server.timeout_ms is not None:
        told["timeout"] = server.timeout_ms
    if server.tools is not None and "*" not in server.tools:
        told["includeTools"] = list(server.tools)
    return {**told, "trust": True}


def _headers(profile: Profile, headers: Mapping[str, str]) -> str:
    # The agent takes the list apart at commas.
    if any("," in value for value in headers.values()):
        raise unsupported(profile, "a comma in provider.headers")
    return ", ".join(f"{name}: {value}" for name, value in headers.items())
