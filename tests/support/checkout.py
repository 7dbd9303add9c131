"""The checkout as tests see it: its root and the distributions in it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Member:
    """One distribution of the workspace, by its folder."""

    path: Path

    @cached_property
    def project(self) -> dict[str, Any]:
        table: dict[str, Any] = read_toml(self.path / "pyproject.toml")["project"]
        return table

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def package(self) -> str:
        return "vally" if self.name == "vally-kernel" else self.name.replace("-", "_")

    @property
    def kind(self) -> str:
        """``grader``, ``executor``, … by the folder; empty for the kernel."""
        return self.path.parent.name.removeprefix("builtin_").removesuffix("s") if self.is_plugin else ""

    @property
    def is_plugin(self) -> bool:
        return self.path.parent.name.startswith("builtin_")

    @property
    def relative(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def modules(self, folder: str = "src") -> list[Path]:
        return sorted((self.path / folder).rglob("*.py"))


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


ROOT_PYPROJECT = read_toml(ROOT / "pyproject.toml")
KERNEL = Member(ROOT / "kernel")
PLUGINS = [Member(path.parent) for path in sorted(ROOT.glob("plugins/*/*/pyproject.toml"))]
MEMBERS = [KERNEL, *PLUGINS]
