"""Where the program of an agent lies, and which version it is, without starting it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from vally_executor_command.config import CommandConfig

_MODULES = "node_modules"


def find_program(config: CommandConfig, env: Mapping[str, str] | None) -> Path | None:
    """The program as the shell would find it; None when it is not there or lies below the workspace."""
    found = shutil.which(str(config.command[0]), path=None if env is None else env.get("PATH"))
    return None if found is None else Path(found)


def installation(program: Path) -> list[Path]:
    """The directories that a program needs: where its name leads, and the packages it was installed with."""
    real = program.resolve()
    parts = real.parts
    packages = Path(*parts[: parts.index(_MODULES) + 1]) if _MODULES in parts else real.parent
    return list(dict.fromkeys((program.parent, packages)))


def installed_version(program: Path, package: str) -> str | None:
    """The version of the npm package that a program belongs to; None when it was installed otherwise."""
    for directory in program.resolve().parents:
        try:
            found = json.loads((directory / "package.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        # Packages for one platform are named like the whole.
        if isinstance(found, dict) and str(found.get("name", "")).startswith(package):
            version = found.get("version")
            return version if isinstance(version, str) else None
    return None
