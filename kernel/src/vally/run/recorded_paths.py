"""Paths of a stimulus as records show them: relative like all others, so that a project may move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_ENVIRONMENTS = ("environment", "agent_environment", "grading_environment")
_GOLDEN = ("golden_patch", "golden_trajectory")


def with_relative_paths(stimulus: Mapping[str, Any], display: Callable[[Path], str]) -> dict[str, Any]:
    """A copy of a stimulus (spec keys) whose absolute source paths are written as `display` names them."""

    def shown(value: Any) -> Any:
        return display(Path(value)) if isinstance(value, str) and Path(value).is_absolute() else value

    def inside(value: Any, key: str) -> Any:
        return {**value, key: shown(value[key])} if isinstance(value, Mapping) and key in value else value

    copy = dict(stimulus)
    for name in _ENVIRONMENTS:
        environment = copy.get(name)
        if isinstance(environment, Mapping):
            copy[name] = _environment(environment, shown, inside)
    for name in _GOLDEN:
        if name in copy:
            copy[name] = inside(copy[name], "path")
    if isinstance(copy.get("attachments"), list):
        copy["attachments"] = [shown(inside(item, "path")) for item in copy["attachments"]]
    return copy


def _environment(
    environment: Mapping[str, Any], shown: Callable[[Any], Any], inside: Callable[[Any, str], Any]
) -> dict[str, Any]:
    copy = dict(environment)
    if isinstance(copy.get("skills"), list):
        copy["skills"] = [shown(item) for item in copy["skills"]]
    if isinstance(copy.get("files"), list):
        copy["files"] = [inside(item, "src") for item in copy["files"]]
    if "git" in copy:
        copy["git"] = inside(copy["git"], "source")
    return copy
