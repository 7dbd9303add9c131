"""What a session is created with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vally import ExecutorError, ExecutorOptions, McpServer
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.native import session_file
from vally_executor_copilot_sdk.permissions import Permissions, permission_handler
from vally_executor_copilot_sdk.provider import ModelAccess

MCP_TIMEOUT_MS = 30_000
AGENTS = Path(".github", "agents")


def session_arguments(
    config: CopilotConfig, options: ExecutorOptions, access: ModelAccess, copilot_home: Path
) -> dict[str, Any]:
    """Arguments of `create_session`, all but the listener of its events."""
    large_output = options.trial_dir / "large-output"
    roots = [
        *([options.assets_dir] if options.assets_dir else []),
        *(skill.path.parent for skill in options.skills),
        session_file(copilot_home, options.trial_id).parent,
        attachments_dir(options),
        large_output,
    ]
    message = config.system_message
    told: dict[str, Any] = {
        "session_id": options.trial_id,
        "working_directory": str(options.work_dir),
        "model": access.model,
        "reasoning_effort": options.reasoning_effort,
        "provider": access.provider,
        "github_token": access.github_token,
        "agent": config.agent,
        "agent_directories": [str(path)] if (path := options.work_dir / AGENTS).is_dir() else None,
        "skill_directories": [str(skill.path.parent) for skill in options.skills] or None,
        "included_builtin_skills": None if config.builtin_skills else [],
        # Refused discovery takes the runtime's own skills away, too.
        "enable_config_discovery": config.config_discovery or (None if config.builtin_skills else False),
        "skip_custom_instructions": config.custom_instructions == "none",
        "available_tools": config.available_tools,
        "excluded_tools": config.excluded_tools,
        "system_message": None if message is None else {"mode": message.mode, "content": message.content},
        "mcp_servers": {name: _mcp_server(server) for name, server in options.mcp_servers.items()} or None,
        "large_output": _large_output(config, large_output),
        "on_permission_request": permission_handler(Permissions(config.permissions, options.work_dir, roots)),
        "on_user_input_request": None if config.ask_user is None else _Answers(config.ask_user),
        "streaming": config.streaming,
        "trust_working_directory": "session",
        "enable_session_telemetry": False,
        "enable_session_store": False,
        "memory": {"enabled": False},
    }
    present = {name: value for name, value in told.items() if value is not None}
    _check_text(present)
    return present


def attachments_dir(options: ExecutorOptions) -> Path:
    """Where the agent finds attachments; the place that they come from is none of its business."""
    return options.trial_dir / "attachments"


def attach(options: ExecutorOptions, turn: int) -> list[dict[str, str]]:
    """Copy the attachments of a turn to where the agent finds them, and say so. Blocks; raises `ExecutorError`."""
    told = []
    for number, attachment in enumerate(options.attachments):
        if attachment.turn != turn:
            continue
        target = attachments_dir(options) / str(number) / Path(attachment.name).name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(attachment.path, target)
        except OSError as error:
            message = f"attachment '{attachment.name}' cannot be read: {error.strerror}"
            raise ExecutorError(message, code="executor-config") from None
        told.append({"type": "file", "path": str(target), "displayName": attachment.name})
    return told


def mcp_timeout_ms(server: McpServer) -> int:
    """How long a server may take to come up."""
    return MCP_TIMEOUT_MS if server.timeout_ms is None else server.timeout_ms


def _mcp_server(server: McpServer) -> dict[str, Any]:
    own: Mapping[str, Any]
    if server.type == "stdio":
        own = {
            "command": server.command,
            "args": list(server.args),
            "env": dict(server.env),
            "working_directory": server.cwd,
        }
    else:
        own = {"url": server.url, "headers": dict(server.headers)}
    tools = ["*"] if server.tools is None else list(server.tools)
    told = {"type": server.type, **own, "tools": tools, "timeout": server.timeout_ms}
    return {name: value for name, value in told.items() if value is not None}


def _large_output(config: CopilotConfig, directory: Path) -> dict[str, Any]:
    told: dict[str, Any] = {"enabled": True, "output_directory": str(directory)}
    if config.large_output_bytes is not None:
        told["max_size_bytes"] = config.large_output_bytes
    return told


def _check_text(arguments: Mapping[str, Any]) -> None:
    """The runtime does not answer at all to what is not Unicode, such as the name of a directory may be."""
    for name, value in arguments.items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            message = f"'{name}' of the session holds text that is not Unicode"
            raise ExecutorError(message, code="executor-config") from None


class _Answers:
    """Answers the agent's questions in order; when there are no more the last one repeats."""

    def __init__(self, texts: list[str]) -> None:
        self._texts: Iterator[str] = iter(texts)
        self._last = ""

    def __call__(self, request: Mapping[str, Any], _: Any) -> dict[str, Any]:
        self._last = next(self._texts, self._last)
        return {"answer": self._last, "wasFreeform": self._last not in (request.get("choices") or [])}
