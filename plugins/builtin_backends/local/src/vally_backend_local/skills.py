"""Skills offered to the agent, as they lie in its workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vally import Skill, SpecError
from vally_backend_local.failures import from_os_error
from vally_backend_local.work import OncePerKey

SKILL_FILE = "SKILL.md"


class SkillReader:
    """Reads skills once per run; each trial gets them with the paths of its own workspace."""

    def __init__(self) -> None:
        self._skills: OncePerKey[Skill] = OncePerKey()

    def staged(self, directories: Sequence[Path], workspace: Path) -> tuple[Skill, ...]:
        """The skills of these directories, staged at their base names. Raises SetupError."""
        return tuple(
            replace(
                self._skills.get(directory, lambda directory=directory: _read(directory)),  # type: ignore[misc]
                path=workspace / directory.name / SKILL_FILE,
            )
            for directory in directories
        )


def _read(directory: Path) -> Skill:
    from vally import parse_skill  # reads YAML, which most trials need not pay for

    path = directory / SKILL_FILE
    try:
        parsed = parse_skill(path)
    except SpecError:
        return _unparsed(directory)
    return Skill(
        name=parsed.name,
        description=parsed.description,
        path=path,
        raw_content=parsed.raw_content,
        frontmatter=parsed.frontmatter,
        file_references=parsed.file_references,
    )


def _unparsed(directory: Path) -> Skill:
    """A skill whose frontmatter is broken: it is staged as it is, and the agent says what it makes of it."""
    try:
        text = (directory / SKILL_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise from_os_error(error, f"read the skill '{directory}'") from error
    return Skill(name=directory.name, description="", path=directory / SKILL_FILE, raw_content=text, frontmatter={})
