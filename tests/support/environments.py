"""Wheels, and virtual environments that hold nothing but what a test put there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checkout import MEMBERS, ROOT, Member
from packaging.requirements import Requirement

UV = [sys.executable, "-m", "uv", "--no-progress"]


def run(argv: Sequence[str | Path], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VALLY_", "PYTHON"))}
    environment = {**kept, "CI": "true", **env}
    return subprocess.run(
        [str(part) for part in argv], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def check(argv: Sequence[str | Path], cwd: Path, **env: str) -> str:
    completed = run(argv, cwd, **env)
    assert completed.returncode == 0, f"{argv}\n{completed.stdout}\n{completed.stderr}"
    return completed.stdout


@dataclass(frozen=True)
class Wheels:
    folder: Path

    def of(self, name: str) -> Path:
        (wheel,) = self.folder.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
        return wheel

    def closure(self, member: Member) -> list[Path]:
        """The wheel of a member and those of the members it requires, directly or not."""
        by_name = {m.name: m for m in MEMBERS}
        names, found = [member.name], []
        while names:
            name = names.pop()
            found.append(self.of(name))
            required = (Requirement(line).name for line in by_name[name].project["dependencies"])
            names += [other for other in required if other in by_name]
        return sorted(set(found))


@dataclass(frozen=True)
class Environment:
    """A virtual environment in ``root/venv``; commands run in ``root``."""

    root: Path

    @property
    def scripts(self) -> Path:
        return self.root / "venv" / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> Path:
        return self.scripts / "python"

    def install(self, *what: str | Path) -> None:
        constraints = ["-c", ROOT / "constraints.txt"]
        check([*UV, "pip", "install", "-q", "--python", self.python, *constraints, *what], self.root)

    def uninstall(self, *names: str) -> None:
        check([*UV, "pip", "uninstall", "-q", "--python", self.python, *names], self.root)

    def vally(self, *args: str) -> subprocess.CompletedProcess[str]:
        return run([self.python, "-m", "vally", *args], self.root)


def new_environment(root: Path) -> Environment:
    check([*UV, "venv", "-q", "--python", sys.executable, root / "venv"], root)
    return Environment(root)
