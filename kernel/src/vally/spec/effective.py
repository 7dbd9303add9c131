"""Effective stimuli: environments merged layer by layer, and the checks that need the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vally.model.evalspec import Artifacts, Position, Stimulus
from vally.model.merging import copied
from vally.spec.constraints import EXPECTED_SKILLS, check_skill_names, limits, needs_skills, shown_constraints
from vally.spec.environments import (
    ENVIRONMENT_KEYS,
    NO_LAYER,
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
    """The environments of a stimulus by key; those of stimuli that add nothing are merged once."""
    key = ("merged", *(id(layers.get(name, NO_LAYER)) for layers in (root, own) for name in ENVIRONMENT_KEYS))
    if key not in loading.memo:
        loading.memo[key] = _merged(root, own)
    environments: Environments = loading.memo[key]
    return environments


def _merged(root: Mapping[str, Layer], own: Mapping[str, Layer]) -> Environments:
    merged = {key: merge_layers(root.get(key, NO_LAYER), own[key]) for key in ENVIRONMENT_KEYS}
    merged[EFFECTIVE] = merge_layers(
        root.get("environment", NO_LAYER),
        root.get("agent_environment", NO_LAYER),
        own["environment"],
        own["agent_environment"],
    )
    return merged


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
    """The stimulus with spec keys; nothing in it is shared with the stimulus or with another document."""
    read, section = parts.read, parts.read.section
    document = {
        "name": read.name,
        "prompt": "\n\n".join(read.turns),
        "turns": list(section.get("turns", ())),
        **{key: merged[key].shown for key in ENVIRONMENT_KEYS},
        "tags": {key: value if isinstance(value, str) else list(value) for key, value in parts.tags.items()},
        "graders": parts.graders,
        "rubric": list(section.get("rubric", ())),
        "constraints": shown_constraints(parts.constraints),
        "artifacts": {key: list(globs) for key, globs in parts.artifacts.items()},
        "attachments": parts.attachments[1],
        "simulation": parts.simulation,
        **parts.golden[1],
        "source": read.source,
    }
    return {key: copied(value) for key, value in document.items() if value not in (None, {}, [])}


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
