"""Claude Code."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from vally import McpServer
from vally_executor_command.profiles.profile import NO_KEY, Additions, Profile, Trial, header_lines, unsupported

_SERVER_MS = 30_000
_GO = 'cd "$1" && shift && exec "$@"'
_FOLDERS = ("skills", "agents", "commands")


class Claude(Profile):
    """Claude Code reads instructions, skills, agents and servers of all directories above the workspace.

    So it is told to read the settings of the user only, which are the trial's own, and the workspace's instructions as
    those of an additional directory. Skills, agents and commands of the workspace are linked into the trial's home.
    """

    name = "claude"
    package = "@anthropic-ai/claude-code"
    command = (
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
        ("--model", "{model}"),
        ("--effort", "{reasoning_effort}"),
        ("--mcp-config", "{mcp_config}"),
        ("--", "{prompt}"),
    )
    continue_command = (*command[:-1], "--resume", "{session_id}", command[-1])
    skills_dir = ".claude/skills"
    families: ClassVar[Mapping[str, tuple[str, ...]]] = {"anthropic": ()}
    limits = frozenset({"maxOutputTokens"})
    gaps = (
        "a turn that was stopped has no usage",
        "'.mcp.json', 'CLAUDE.local.md' and '.claude/settings.local.json' of the workspace are not read",
    )

    def mcp_server(self, server: McpServer) -> McpServer:
        """It starts servers in the workspace, whatever their `cwd` is; so a shell goes there first."""
        if server.cwd is None or server.command is None:
            return server
        if sys.platform == "win32":
            raise unsupported(self, f"'cwd' of MCP server '{server.name}' on Windows")
        return replace(server, command="/bin/sh", args=("-c", _GO, "sh", server.cwd, server.command, *server.args))

    def add(self, trial: Trial) -> Additions:
        """Keep the agent to the workspace and point it to the provider."""
        _check_servers(self, trial.servers)
        arguments: list[str] = []
        env = {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Without it the agent refuses to run without asking when it runs as root.
            "IS_SANDBOX": "1",
        }
        if trial.servers:
            env["MCP_TIMEOUT"] = str(max(server.timeout_ms or _SERVER_MS for server in trial.servers.values()))
        if trial.home is not None:
            _hand_over(trial.work_dir, trial.home / ".claude")
            arguments += ["--strict-mcp-config", "--setting-sources", "user", "--add-dir", str(trial.work_dir)]
            env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] = "1"
            settings = trial.work_dir / ".claude" / "settings.json"
            if settings.is_file():
                arguments += ["--settings", str(settings)]
        return Additions(arguments=tuple(arguments), env={**env, **_provider(trial)})

    def has_builtin_skill(self, name: str, trial: Trial) -> bool:
        """One that is in no directory of skills; those of plugins have a colon in their names."""
        homes = (trial.home or Path(trial.env.get("HOME", "/")), trial.work_dir)
        return ":" not in name and not any((home / ".claude" / "skills" / name).exists() for home in homes)


def _provider(trial: Trial) -> dict[str, str]:
    provider = trial.provider
    if provider is None:
        return {}
    env = {"ANTHROPIC_BASE_URL": provider.base_url or ""}
    if provider.bearer_token is not None:
        env["ANTHROPIC_AUTH_TOKEN"] = provider.bearer_token
    else:
        env["ANTHROPIC_API_KEY"] = provider.api_key or NO_KEY
    if provider.headers:
        env["ANTHROPIC_CUSTOM_HEADERS"] = header_lines(provider.headers)
    if trial.limits is not None and trial.limits.max_output_tokens is not None:
        env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(trial.limits.max_output_tokens)
    return env


def _check_servers(profile: Profile, servers: Mapping[str, McpServer]) -> None:
    for server in servers.values():
        if server.tools is not None and "*" not in server.tools:
            raise unsupported(profile, f"'tools' of MCP server '{server.name}'")


def _hand_over(workspace: Path, home: Path) -> None:
    """Link what a workspace has for Claude Code into the configuration of the user, which is the trial's own."""
    home.mkdir(parents=True, exist_ok=True)
    for folder in _FOLDERS:
        if (workspace / ".claude" / folder).is_dir():
            _link(workspace / ".claude" / folder, home / folder)
    own = (workspace / "CLAUDE.md", workspace / ".claude" / "CLAUDE.md")
    # What other agents are told is read where there is nothing for this one.
    if (workspace / "AGENTS.md").is_file() and not any(path.is_file() for path in own):
        _link(workspace / "AGENTS.md", home / "CLAUDE.md")


def _link(source: Path, target: Path) -> None:
    if target.exists() or target.is_symlink():
        return
    try:
        target.symlink_to(source, target_is_directory=source.is_dir())
    except OSError:
        # Some systems let nobody make links.
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        with contextlib.suppress(OSError):
            copy(source, target)
