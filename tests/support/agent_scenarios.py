"""What agents are asked to do, against the scripted model: the same for all, each with its own tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Provider type, and what follows the address of the mock server.
FAMILIES = {
    "copilot": ("openai", "/v1"),
    "claude": ("anthropic", ""),
    "codex": ("openai", "/v1"),
    "gemini": ("gemini", ""),
    "opencode": ("openai", "/v1"),
}
AGENTS = tuple(FAMILIES)

# How each agent calls its tools for writing a file and for the shell; how it names the call in its stream.
_WRITE = {
    "copilot": ("create", "path", "file_text"),
    "claude": ("Write", "file_path", "content"),
    "gemini": ("write_file", "file_path", "content"),
    "opencode": ("write", "filePath", "content"),
}
_SHELL = {
    "copilot": ("bash", "command"),
    "claude": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    "opencode": ("bash", "command"),
}
SHELL_IN_STREAM = {**{name: tool for name, (tool, _) in _SHELL.items()}, "codex": "bash"}
WRITE_IN_STREAM = {**{name: tool for name, (tool, *_) in _WRITE.items()}, "codex": "bash"}
MCP_IN_STREAM = {
    "copilot": "calc-add",
    "claude": "mcp__calc__add",
    "codex": "mcp__calc__add",
    "gemini": "mcp_calc_add",
    "opencode": "calc_add",
}


def call(tool: str, **arguments: Any) -> str:
    """A line of a script that calls a tool."""
    return f"!tool {tool} {json.dumps(arguments)}"


def write(agent: str, path: str, text: str) -> str:
    """A call that writes a file; Codex writes with its shell."""
    if agent == "codex":
        return shell(agent, f"printf '%s' '{text}' > {path}")
    tool, where, what = _WRITE[agent]
    return call(tool, **{where: path, what: text})


def shell(agent: str, command: str) -> str:
    """A call of the shell."""
    tool, key = _SHELL[agent]
    described = {} if agent == "codex" else {"description": "as asked"}
    return call(tool, **{key: command}, **described)


_SKILL = {
    "copilot": call("skill", skill="greeter"),
    "claude": call("Skill", skill="greeter"),
    "codex": shell("codex", "cat .agents/skills/greeter/SKILL.md"),
    "gemini": call("activate_skill", name="greeter"),
    "opencode": call("skill", name="greeter"),
}


def two_turns(agent: str, path: str) -> tuple[str, str]:
    """A tool call that writes a file, a shell call that fails, text; then a shell call and text."""
    first = (
        "Write the file.",
        "!usage 1000 20 400",
        "!reason Thinking about it.",
        write(agent, path, "hello"),
        "!usage 1100 10",
        shell(agent, "echo seen; exit 3"),
        "!usage 1200 5",
        "!say The first is done.",
    )
    second = ("Go on.", "!usage 1300 10", shell(agent, "echo two"), "!usage 1400 5", "!say The second is done.")
    return "\n".join(first), "\n".join(second)


def skill_and_server(agent: str) -> str:
    """Takes up the skill `greeter`, and calls the tool `add` of the MCP server `calc`."""
    lines = (
        "Use both.",
        "!usage 1500 10",
        _SKILL[agent],
        "!usage 1600 10",
        call(MCP_IN_STREAM[agent], a=2, b=3),
        "!usage 1700 5",
        "!say The third is done.",
    )
    return "\n".join(lines)


def refused(_agent: str, _path: str) -> tuple[str]:
    """A request that the provider refuses for good."""
    return ("Try.\n!fail 400",)


def with_sub_agent(agent: str, _path: str) -> tuple[str]:
    """A sub-agent that says something."""
    told = {"description": "greet", "prompt": "Greet.\n!say Hello from below."}
    kind = {"claude": "general-purpose", "copilot": "general-purpose"}[agent]
    name = {"claude": "Task", "copilot": "task"}[agent]
    extra = {"claude": {"subagent_type": kind}, "copilot": {"agent_type": kind, "name": "greeter"}}[agent]
    return (f"Delegate.\n{call(name, **told, **extra)}\n!say The sub-agent greeted.",)


def config(agent: str, url: str, **keys: Any) -> Mapping[str, Any]:
    """The config of the executor for an agent whose model is the mock server."""
    family, suffix = FAMILIES[agent]
    provider = {"type": family, "baseUrl": url + suffix, "apiKeyEnv": "SCENARIO_API_KEY"}
    return {"profile": agent, "provider": provider, **keys}
