"""Merging: what a stimulus adds to its spec, what only the agent gets to what all see, what a variant changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from vally.model.evalspec import DEFAULT_COMMAND_TIMEOUT_MS, Environment, McpServer

_LISTS = ("files", "commands")
_MAPS = ("mcpServers", "env")

# Nobody can change it, so all share it.
_NOTHING = Environment()


def _real(path: Any) -> str:
    return str(os.path.realpath(path))


def merge_environment_mappings(*layers: Mapping[str, Any], real: Callable[[Any], str] = _real) -> dict[str, Any]:
    """Merge environments with the keys of a spec, later ones over earlier ones.

    Skills are united, files and commands appended, an explicit empty list clears. `mcpServers` and `env` are laid
    over each other by key, where None removes; every other key is replaced as a whole. `real` tells which directory a
    path of a skill leads to.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if key == "skills":
                merged[key] = _united([*merged.get(key, ()), *value], real) if value else []
            elif key in _LISTS:
                merged[key] = [*merged.get(key, ()), *value] if value else []
            elif key in _MAPS:
                over = {**merged.get(key, {}), **(value or {})}
                merged[key] = {name: item for name, item in over.items() if item is not None}
            else:
                merged[key] = value
    return merged


def _united(skills: list[Any], real: Callable[[Any], str]) -> list[Any]:
    """Skills without those that lead to the same directory."""
    if len(skills) == 1:
        return skills
    kept: dict[str, Any] = {}
    for skill in skills:
        kept.setdefault(real(skill), skill)
    return list(kept.values())


def merge_variant_override(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay what a variant changes over a part of a spec.

    Mappings merge deeply, lists replace (an empty one clears), None deletes the key, other values replace. The result
    shares no mapping with either argument.
    """
    merged = {key: copied(value) for key, value in base.items()}
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge_variant_override(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = copied(value)
    return merged


def copied(value: Any) -> Any:
    """A JSON-like value that shares no mapping and no list with the original."""
    kind = type(value)
    if kind is str:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def merge_environments(base: Environment, over: Environment) -> Environment:
    """Lay one environment over another by the rules for a stimulus over its spec.

    An Environment does not tell an absent list from one that clears, so empty files and commands add nothing, and
    the default limit for commands counts as absent.
    """
    return environment_of(merge_environment_mappings(_mapping(base), _mapping(over)))


def environment_of(mapping: Mapping[str, Any]) -> Environment:
    """The environment that a merged mapping describes; its values are those of the fields of Environment."""
    if not mapping:
        return _NOTHING
    skills = mapping.get("skills")
    values: dict[str, Any] = {
        "skills": None if skills is None else tuple(skills),
        "files": tuple(mapping.get("files", ())),
        "commands": tuple(mapping.get("commands", ())),
        "git": mapping.get("git"),
        "mcp_servers": {name: _own(server) for name, server in mapping.get("mcpServers", {}).items()},
        "env": dict(mapping.get("env", {})),
    }
    if (timeout := mapping.get("commandTimeout")) is not None:
        values["command_timeout_ms"], values["command_timeout_text"] = timeout
    return Environment(**values)


def _own(server: McpServer) -> McpServer:
    """A server whose mappings no other environment shares."""
    return replace(server, env=dict(server.env), headers=dict(server.headers))


def _mapping(environment: Environment) -> dict[str, Any]:
    values: dict[str, Any] = {"mcpServers": environment.mcp_servers, "env": environment.env}
    if environment.skills is not None:
        values["skills"] = environment.skills
    if environment.files:
        values["files"] = environment.files
    if environment.commands:
        values["commands"] = environment.commands
    if environment.git is not None:
        values["git"] = environment.git
    if environment.command_timeout_ms != DEFAULT_COMMAND_TIMEOUT_MS:
        values["commandTimeout"] = (environment.command_timeout_ms, environment.command_timeout_text)
    return values
