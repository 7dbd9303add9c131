"""Whether the skills on offer can be used at all, for agents that would leave a broken one out without a word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vally.errors import ExecutorError, SpecError

if TYPE_CHECKING:
    from vally.run.inputs import Skill

_OPENED = re.compile(r"\ufeff?---[ \t]*[\r\n]")


def check_offered_skills(skills: Iterable[Skill]) -> None:
    """Raise `ExecutorError` with the code `skill-not-loaded` for a skill whose SKILL.md has broken frontmatter."""
    for skill in skills:
        reason = _problem(skill)
        if reason is not None:
            raise ExecutorError(f"skill '{skill.name}' cannot be loaded: {reason}", code="skill-not-loaded")


def _problem(skill: Skill) -> str | None:
    from vally.spec import parse_skill

    try:
        parsed = parse_skill(skill.path)
    except SpecError as error:
        first = error.diagnostics[0] if error.diagnostics else None
        if first is None:
            return error.message
        place = f"line {first.line}: " if first.line is not None else ""
        return f"{skill.path.name}: {place}{first.message}"
    if _OPENED.match(parsed.raw_content) and not parsed.has_frontmatter:
        return f"{skill.path.name}: the frontmatter is not closed by a line '---'"
    return None
