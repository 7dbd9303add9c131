"""The skills that a stimulus ends up with: which are offered, and which would be staged at one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.spec.diagnostics import related
from vally.spec.environments import Merged
from vally.spec.loading import Loading
from vally.spec.skills import skill_name

if TYPE_CHECKING:
    from pathlib import Path

    from vally.spec.diagnostics import Place
    from vally.spec.nodes import Node


def check_collisions(loading: Loading, merged: Merged) -> None:
    """Report two skills of one effective list that would be staged at the same place."""
    written: dict[Path, tuple[Node, Place]] = {}
    for layer in merged.layers:
        for path, node, place in layer.skills:
            written.setdefault(path, (node, place))
    first: dict[str, Path] = {}
    for path in merged.actual.get("skills", ()):
        other = first.setdefault(path.name, path)
        if other != path:
            loading.collector.add(
                "skill-name-collision",
                *written[path],
                related=[related(written[other][0], "the other one")],
                name=path.name,
                first=loading.display(other),
                second=loading.display(path),
            )


@dataclass(frozen=True, slots=True)
class OfferedSkills:
    """What is known of the skills of a stimulus: `names` is None when no layer declares any, or some are missing."""

    names: tuple[str, ...] | None
    nothing: bool


def known_skills(loading: Loading, merged: Merged) -> OfferedSkills:
    """The names of the skills that a stimulus declares, and whether none at all is offered to the agent."""
    if any(layer.lacks_skills for layer in merged.layers):
        return OfferedSkills(None, nothing=False)
    if "skills" not in merged.actual:
        return OfferedSkills(None, nothing=not loading.skill_dirs)
    names = tuple(skill_name(loading, path) for path in merged.actual["skills"])
    return OfferedSkills(names, nothing=not names)
