"""Finding out that an agent read an offered skill, when it does not say so itself."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vally.run.inputs import Skill

_NAME_BREAKS = re.compile(r"[^a-z0-9]+")
_WORD_BREAKS = re.compile(r"[\s\"'`;|&<>()=]+")


class SkillReads:
    """Compares the arguments of tool calls with the skills offered in a workspace."""

    def __init__(self, skills: Sequence[Skill], work_dir: Path) -> None:
        self._work_dir = work_dir
        self._by_name = {skill.name: skill for skill in skills}
        self._by_path = {os.path.realpath(skill.path): skill for skill in skills}
        self._file_names = {skill.path.name for skill in skills}

    def of_call(self, tool: str, arguments: object) -> list[Skill]:
        """Skills that a call takes up: named to a tool such as `activate_skill`, or their SKILL.md by its path."""
        if not self._by_name:
            return []
        texts = list(_texts(arguments))
        if "skill" in _NAME_BREAKS.split(tool.casefold()):
            return [skill for name, skill in self._by_name.items() if name in texts]
        found = {path: self._by_path[path] for text in texts for path in self._named_paths(text)}
        return list(found.values())

    def _named_paths(self, text: str) -> Iterator[str]:
        if not any(name in text for name in self._file_names):
            return
        # A path argument may hold blanks; a command line is taken apart into words.
        for word in (text, *_WORD_BREAKS.split(text)):
            path = self._resolved(word)
            if path in self._by_path:
                yield path

    def _resolved(self, word: str) -> str:
        try:
            return os.path.realpath(self._work_dir / word)
        except (OSError, ValueError):
            return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
