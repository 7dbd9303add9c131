"""Hashes of specs and experiments that do not depend on the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vally.model.jsonio import content_hash
from vally.spec.paths import is_absolute

SECRET_MAPS = frozenset({"env", "headers"})
"""Mappings whose values are nobody's business."""
HIDDEN = "<redacted>"
"""What stands for such a value."""


def hash_of(value: object) -> str:
    """The hash of a value that `portable` or its siblings made; empty when it holds a number that is not finite."""
    try:
        return content_hash(value)
    except ValueError:
        return ""


def portable(value: Any, root: Path) -> Any:
    """A copy without the values of `env` and `headers`; absolute paths below a directory become relative to it."""
    return _portable(value, root.as_posix().rstrip("/"))


def _portable(value: Any, root: str) -> Any:
    if isinstance(value, str):
        if value == root:
            return "."
        return value[len(root) + 1 :] if value.startswith(f"{root}/") else value
    if isinstance(value, Mapping):
        return {
            key: dict.fromkeys(item, HIDDEN)
            if key in SECRET_MAPS and isinstance(item, Mapping)
            else _portable(item, root)
            for key, item in value.items()
        }
    return [_portable(item, root) for item in value] if isinstance(value, list | tuple) else value


def portable_environment(environment: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """An environment as records show it, its paths relative to a directory even when they lie outside of it."""
    made = portable(environment, root)
    if "skills" in made:
        made["skills"] = [_relative(path, root) for path in made["skills"]]
    for file in made.get("files", ()):
        file["src"] = _relative(file["src"], root)
    for holder, key in [(made.get("git"), "source"), *((item, "cwd") for item in made.get("mcpServers", {}).values())]:
        if holder and key in holder:
            holder[key] = _relative(holder[key], root)
    return dict(made)


def portable_spec(document: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The document of a spec in this form."""
    made = portable({key: value for key, value in document.items() if key != "stimuli"}, root)
    made["stimuli"] = [_portable_stimulus(stimulus, root) for stimulus in document.get("stimuli", ())]
    return {**made, **_portable_environments(document, root)}


def _portable_environments(document: Mapping[str, Any], root: Path) -> dict[str, Any]:
    keys = ("environment", "agent_environment", "grading_environment")
    return {key: portable_environment(document[key], root) for key in keys if key in document}


def _portable_stimulus(document: Mapping[str, Any], root: Path) -> dict[str, Any]:
    made = {**portable(document, root), **_portable_environments(document, root)}
    files = [*made.get("attachments", ()), *(made.get(key) for key in ("golden_patch", "golden_trajectory"))]
    for file in files:
        if isinstance(file, dict) and "path" in file:
            file["path"] = _relative(file["path"], root)
    return made


def _relative(path: str, root: Path) -> str:
    """A path relative to a directory, with `/`; as it is when it is relative already, or on another drive."""
    if not is_absolute(path):
        return path
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:
        return path
