"""One skill on disk: its SKILL.md, and the files beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vally import Diagnostic, SkillFile, inspect_skill

SKILL_FILE = "SKILL.md"
SKIPPED_DIRECTORIES = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"})
SCRIPT_SUFFIXES = (".ps1", ".sh", ".py", ".bat", ".cmd", ".bash")
MAX_TEXT_BYTES = 2**20
MAX_FILES = 10_000
_BINARY_PROBE = 8192


@dataclass(kw_only=True)
class SkillSource:
    """A skill directory; `display` is how messages name it. Files are read once."""

    directory: Path
    display: str
    skill: SkillFile | None
    diagnostics: tuple[Diagnostic, ...] = ()
    _texts: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path, display: str) -> SkillSource:
        """Read the SKILL.md of a directory."""
        skill, diagnostics = inspect_skill(directory / SKILL_FILE, display=f"{display}/{SKILL_FILE}")
        return cls(directory=directory, display=display, skill=skill, diagnostics=diagnostics)

    @property
    def name(self) -> str:
        """The name of the frontmatter, else of the directory."""
        return self.directory.name if self.skill is None else self.skill.name

    @property
    def main_file(self) -> str:
        """SKILL.md as displayed."""
        return self.shown(SKILL_FILE)

    def shown(self, path: str) -> str:
        """A path relative to the skill as displayed."""
        return f"{self.display}/{path}"

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Files of the skill, relative with `/`, sorted; directories of other tools and linked ones are left out."""
        return tuple(sorted(self._walk())[:MAX_FILES])

    def _walk(self) -> Iterator[str]:
        for base, directories, names in os.walk(self.directory):
            directories[:] = [name for name in directories if name not in SKIPPED_DIRECTORIES]
            inside = Path(base).relative_to(self.directory)
            yield from ((inside / name).as_posix() for name in names)

    @property
    def scripts(self) -> list[str]:
        """Files below `scripts/` that a shell or an interpreter runs."""
        return [path for path in self.files if path.startswith("scripts/") and path.endswith(SCRIPT_SUFFIXES)]

    def text(self, path: str) -> str | None:
        """Text of a file of the skill; None when it is binary, unreadable or larger than 1 MiB."""
        if path == SKILL_FILE and self.skill is not None:
            return self.skill.raw_content
        if path not in self._texts:
            self._texts[path] = _text(self.directory / path)
        return self._texts[path]


def _text(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except OSError:
        return None
    if len(data) > MAX_TEXT_BYTES or b"\0" in data[:_BINARY_PROBE]:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
