"""opencode."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from vally import McpServer
from vally_executor_command.profiles.profile import (
    KEY_VARIABLE,
    Additions,
    Profile,
    Trial,
    header_variables,
    secret_environment,
)
from vally_executor_command.staging import write_private

_PROVIDER = "vally"
_PACKAGES = {
    ("openai", "completions"): "@ai-sdk/openai-compatible",
    ("openai", "responses"): "@ai-sdk/openai",
    ("anthropic", "completions"): "@ai-sdk/anthropic",
}
_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
_UNAVAILABLE = re.compile(r'message="server unavailable" key=(\S+)(.*)')
_CONTEXT_TOKENS, _OUTPUT_TOKENS = 128_000, 32_000


class Opencode(Profile):
    """opencode reads configuration, instructions and skills of all directories up to the root of a repository or disk.

    So it is told to read none of a project, and gets instructions and skills of the workspace by its configuration.
    """

    name = "opencode"
    package = "opencode-ai"
    command = (
        "opencode",
        "run",
        "--format",
        "json",
        "--thinking",
        # The log is where it tells that an MCP server did not come up.
        "--print-logs",
        "--log-level",
        "WARN",
        ("-m", "{model}"),
        ("--variant", "{reasoning_effort}"),
    )
    continue_command = (*command, "--session", "{session_id}")
    skills_dir = ".opencode/skills"
    mcp_by_file = True
    families: ClassVar[Mapping[str, tuple[str, ...]]] = {"openai": ("completions", "responses"), "anthropic": ()}
    limits = frozenset({"maxPromptTokens", "maxOutputTokens"})
    gaps = (
        "a call is told together with its result, so that one that was stopped is missing",
        "what sub-agents do is not told",
        "'opencode.json' and agents in '.opencode' of the workspace are not read",
    )

    def model_argument(self, trial: Trial) -> str:
        """Models are named with their provider."""
        return f"{_PROVIDER}/{trial.wire_model}" if trial.provider and trial.wire_model else trial.wire_model or ""

    def add(self, trial: Trial) -> Additions:
        """A configuration file of the trial, on top of which nothing of a project is read."""
        config = write_private(trial.trial_dir / "opencode.json", json.dumps(self._config(trial), indent=2))
        env = {"OPENCODE_CONFIG": str(config), "OPENCODE_DISABLE_AUTOUPDATE": "1", **secret_environment(trial)}
        if trial.home is not None:
            env |= {
                "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
                "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
                "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            }
        if trial.provider is not None:
            env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
        return Additions(env=env)

    def failed_servers(self, stderr: str, names: Iterable[str]) -> Mapping[str, str]:
        """From its log."""
        known = set(names)
        return {key: rest.strip() for key, rest in _UNAVAILABLE.findall(stderr) if key in known}

    def _config(self, trial: Trial) -> dict[str, Any]:
        found = next((trial.work_dir / name for name in _INSTRUCTIONS if (trial.work_dir / name).is_file()), None)
        config: dict[str, Any] = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            # Its only use is a title, for one more request.
            "agent": {"title": {"disable": True}},
            # Of several rules for a tool the last one holds.
            "permission": {"*": "allow", "question": "deny", **dict(_chosen_tools(trial.servers))},
        }
        if trial.home is not None:
            config["instructions"] = [str(found)] if found else []
            skills = trial.work_dir / self.skills_dir
            config["skills"] = {"paths": [str(skills)] if skills.is_dir() else []}
        if trial.servers:
            config["mcp"] = {name: _server(server) for name, server in trial.servers.items()}
        return {**config, **(self._provider(trial) if trial.provider else {})}

    def _provider(self, trial: Trial) -> dict[str, Any]:
        provider, limits = trial.provider, trial.limits
        assert provider is not None
        assert limits is not None
        model = trial.wire_model or ""
        url = provider.base_url or ""
        about = {
            "npm": _PACKAGES[provider.type, self.wire_api(limits)],
            "name": _PROVIDER,
            "options": {
                "baseURL": f"{url}/v1" if provider.type == "anthropic" else url,
                "apiKey": f"{{env:{KEY_VARIABLE}}}",
                "headers": {name: f"{{env:{variable}}}" for name, variable in header_variables(provider).items()},
            },
            "models": {
                model: {
                    "name": model,
                    "limit": {
                        "context": limits.max_prompt_tokens or _CONTEXT_TOKENS,
                        "output": limits.max_output_tokens or _OUTPUT_TOKENS,
                    },
                }
            },
        }
        name = f"{_PROVIDER}/{model}"
        return {"provider": {_PROVIDER: about}, "model": name, "small_model": name}


def _server(server: McpServer) -> dict[str, Any]:
    if server.type == "stdio":
        command = [server.command, *server.args]
        told: dict[str, Any] = {"type": "local", "command": command, "environment": dict(server.env)}
        if server.cwd is not None:
            told["cwd"] = server.cwd
    else:
        told = {"type": "remote", "url": server.url, "headers": dict(server.headers)}
    return {**told, "enabled": True, "timeout": server.timeout_ms or 30_000}


def _chosen_tools(servers: Mapping[str, McpServer]) -> Iterable[tuple[str, str]]:
    for name, server in servers.items():
        if server.tools is not None and "*" not in server.tools:
            yield f"{name}_*", "deny"
            yield from ((f"{name}_{tool}", "allow") for tool in server.tools)
