"""Effective stimuli: environments merged layer by layer, and the checks that need the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vally.model.evalspec import Artifacts, Position, Stimulus
from vally.model.merging import copied
from vally.spec.constraints import EXPECTED_SKILLS, check_skill_names, limits, needs_skills
from vally.spec.environments import (
    ENVIRONMENT_KEYS,
    Layer,
    Merged,
    merge_layers,
)
from vally.spec.loading import Loading
from vally.spec.nodes import Node
from vally.spec.skill_offers import check_collisions, known_skills
from vally.spec.stimulus_parts import StimulusParts

EFFECTIVE = "effective"
"""Key of the environment as the agent sees it, beside the three keys of a spec."""
Environments = Mapping[str, Merged]


@dataclass(slots=True)
class Effective:
    """One effective stimulus with what it was made from."""

    stimulus: Stimulus
    parts: StimulusParts
    environments: Environments


def merge_environments(loading: Loading, root: Mapping[str, Layer], own: Mapping[str, Layer]) -> Environments:
    """The environments of a stimulus by key."""
    merged = {key: merge_layers(loading, root[key], own[key]) for key in ENVIRONMENT_KEYS}
    effective = (layers[key] for layers in (root, own) for key in ("environment", "agent_environment"))
    return {**merged, EFFECTIVE: merge_layers(loading, *effective)}


def make_effective(loading: Loading, environments: Environments, parts: StimulusParts) -> Effective:
    """Make one stimulus and check what depends on its environments."""
    merged = environments[EFFECTIVE]
    check_collisions(loading, merged)
    offered = known_skills(loading, merged)
    check_skill_names(loading, parts.constraints, offered.names)
    if offered.nothing:
        _report_nothing_under_test(loading, parts)
    return Effective(_stimulus(parts, environments), parts, environments)


def _stimulus(parts: StimulusParts, merged: Environments) -> Stimulus:
    read, section = parts.read, parts.read.section
    environments = {key: value.environment for key, value in merged.items()}
    return Stimulus(
        name=read.name,
        prompt="\n\n".join(read.turns),
        turns=read.turns,
        has_turns="turns" in section.values,
        environment=environments["environment"],
        agent_environment=environments["agent_environment"],
        grading_environment=environments["grading_environment"],
        effective_environment=environments[EFFECTIVE],
        tags=parts.tags,
        graders=parts.finished,
        rubric=tuple(section.get("rubric", ())),
        constraints=limits(parts.constraints),
        artifacts=Artifacts(**parts.artifacts),
        attachments=tuple(parts.attachments[0]),
        simulation=parts.simulation,
        **parts.golden[0],
        source=read.source,
        position=_position(section.node),
        document=_document(parts, merged),
    )


def _document(parts: StimulusParts, merged: Environments) -> dict[str, Any]:
    """The stimulus with spec keys; no two stimuli of a spec share anything in it."""
    shown = {key: copied(merged[key].shown) for key in ENVIRONMENT_KEYS if merged[key].shown}
    return {**parts.document, **shown}


def _position(node: Node) -> Position:
    return Position(file=node.source.display, line=node.line, column=node.column)


def _report_nothing_under_test(loading: Loading, parts: StimulusParts) -> None:
    """Once per stimulus, at the first check that needs a skill."""
    constraints = parts.constraints
    expecting = needs_skills(loading, parts.entries)
    if expecting:
        loading.collector.add("nothing-under-test", expecting[0].node, expecting[0].place)
    elif constraints is not None and constraints.get(EXPECTED_SKILLS):
        place = constraints.place.key(EXPECTED_SKILLS)
        loading.collector.add("nothing-under-test", constraints.at(EXPECTED_SKILLS), place)
