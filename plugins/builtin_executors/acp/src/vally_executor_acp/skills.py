"""Skills where the agent looks for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from vally import Skill, segment


def stage_skills(skills: Iterable[Skill], target: Path) -> None:
    """Copy each skill below a directory; one that lies there already stays as it is."""
    for skill in skills:
        place = target / segment(skill.name)
        if skill.path.parent.resolve() != place.resolve():
            shutil.copytree(skill.path.parent, place, symlinks=True, dirs_exist_ok=True)


def offered_places(skills: Iterable[Skill], place: str | None, work_dir: Path) -> tuple[Skill, ...]:
    """The skills under each path at which the agent may read them."""
    found = tuple(skills)
    if place is None:
        return found
    copies = (replace(skill, path=work_dir / place / segment(skill.name) / skill.path.name) for skill in found)
    return (*found, *copies)


def link_skills(source: Path, target: Path) -> None:
    """Let an agent that reads skills from its home find those of the workspace there."""
    if not source.is_dir() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(source, target_is_directory=True)
    except OSError:
        # Some systems let nobody make links.
        shutil.copytree(source, target)
