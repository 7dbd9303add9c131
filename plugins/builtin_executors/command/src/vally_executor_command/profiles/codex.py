"""Codex CLI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from vally import McpServer
from vally_executor_command.profiles.profile import (
    KEY_VARIABLE,
    Additions,
    Profile,
    Trial,
    header_variables,
    needs_private_home,
    secret_environment,
    unsupported,
)
from vally_executor_command.staging import write_private

_PROVIDER = "vally"
_FAILED = re.compile(r"required MCP servers failed to initialize: (.+)")
_OPTIONS = (
    "--json",
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    ("-m", "{model}"),
    ("-c", 'model_reasoning_effort="{reasoning_effort}"'),
)


class Codex(Profile):
    """Codex looks for instructions and skills up to the root of a project; without markers that is the workspace."""

    name = "codex"
    package = "@openai/codex"
    command = ("codex", "exec", *_OPTIONS, ("--", "{prompt}"))
    continue_command = ("codex", "exec", "resume", *_OPTIONS, "--", "{session_id}", ("{prompt}",))
    skills_dir = ".agents/skills"
    mcp_by_file = True
    families: ClassVar[Mapping[str, tuple[str, ...]]] = {"openai": ("responses",)}
    limits = frozenset({"maxPromptTokens"})
    gaps = ("events have the time at which they arrived", "a turn that was stopped has no usage")

    def add(self, trial: Trial) -> Additions:
        """Provider by options, MCP servers by the configuration in the trial's home."""
        options: dict[str, Any] = {}
        if trial.home is not None:
            options |= {"project_root_markers": [], "analytics.enabled": False}
        if trial.servers:
            home = needs_private_home(self, trial, "MCP servers")
            tables = [_table(self, name, server) for name, server in trial.servers.items()]
            write_private(home / ".codex" / "config.toml", "\n".join(tables))
        if trial.provider is not None:
            options |= _provider(trial)
        arguments = tuple(word for key, value in options.items() for word in ("-c", f"{key}={_toml(value)}"))
        return Additions(arguments=arguments, env=secret_environment(trial))

    def failed_servers(self, stderr: str, names: Iterable[str]) -> Mapping[str, str]:
        """The agent does not start without a required server."""
        found = _FAILED.search(stderr)
        if found is None:
            return {}
        return {name: found[1][:2048] for name in names if re.search(rf"\b{re.escape(name)}:", found[1])}


def _provider(trial: Trial) -> dict[str, Any]:
    provider = trial.provider
    assert provider is not None
    about: dict[str, Any] = {"name": _PROVIDER, "base_url": provider.base_url, "wire_api": "responses"}
    about["env_key"] = KEY_VARIABLE
    if provider.headers:
        about["env_http_headers"] = header_variables(provider)
    options: dict[str, Any] = {
        "model_provider": _PROVIDER,
        f"model_providers.{_PROVIDER}": about,
        # The agent's commands have no business with the key.
        "shell_environment_policy.exclude": ["AGENT_PROVIDER_*"],
        "check_for_update_on_startup": False,
    }
    if trial.limits is not None and trial.limits.max_prompt_tokens is not None:
        options["model_context_window"] = trial.limits.max_prompt_tokens
    return options


def _table(profile: Profile, name: str, server: McpServer) -> str:
    if server.type == "sse":
        raise unsupported(profile, f"MCP server '{name}' of type sse")
    lines = [f"[mcp_servers.{_toml(name)}]", *(f"{key} = {_toml(value)}" for key, value in _facts(server))]
    return "\n".join([*lines, ""])


def _facts(server: McpServer) -> Iterator[tuple[str, Any]]:
    if server.type == "stdio":
        yield from (("command", server.command), ("args", list(server.args)), ("env", dict(server.env)))
        if server.cwd is not None:
            yield "cwd", server.cwd
    else:
        yield from (("url", server.url), ("http_headers", dict(server.headers)))
    if server.tools is not None and "*" not in server.tools:
        yield "enabled_tools", list(server.tools)
    yield "startup_timeout_sec", max(1, (server.timeout_ms or 30_000) // 1000)
    yield "required", True


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, (bool, int)):
        return json.dumps(value)
    # Strings of JSON are strings of TOML, but for one control character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
