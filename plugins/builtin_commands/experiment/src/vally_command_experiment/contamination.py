"""Whether the agents of an arm loaded what its environment resolves to, and nothing else.

An arm is one eval in one variant with one model. Agents tell in the metadata of trajectories what they loaded; what an
agent does not tell cannot be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from vally import SpecError, TrialDone, VallyError, parse_skill

Arm = tuple[str, str, str]
"""Variant, eval file, model."""
Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What an agent had: skills, MCP servers (None when it does not tell), and files with instructions."""

    skills: Names
    servers: Names | None
    foreign_instructions: Names
    other_skills: Names

    def document(self) -> dict[str, Any]:
        """For the records."""
        servers = {} if self.servers is None else {"mcpServers": sorted(self.servers)}
        return {
            "skills": sorted(self.skills | self.other_skills),
            **servers,
            "instructions": sorted(self.foreign_instructions),
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What the environment of a stimulus resolves to."""

    skills: Names
    servers: Names


@dataclass(slots=True)
class LoadedSets:
    """Gathers what the agents of each arm loaded; distinct sets are few, however many trials there are."""

    _seen: dict[Arm, set[tuple[Expected, Loaded]]] = field(default_factory=dict)
    _skill_names: dict[Path, str] = field(default_factory=dict)

    def add(self, event: TrialDone) -> None:
        """Count a finished trial; one without a trajectory says nothing."""
        trajectory, item = event.result.trajectory, event.item
        if trajectory is None:
            return
        environment = item.stimulus.merged_environment
        expected = Expected(
            skills=frozenset(map(self._skill_name, item.skills)), servers=frozenset(environment.mcp_servers or ())
        )
        arm = (event.result.variant, event.result.eval_file_path, event.result.model or "")
        loaded = _loaded(trajectory.metadata, event.result.workspace_path)
        self._seen.setdefault(arm, set()).add((expected, loaded))

    def _skill_name(self, path: Path) -> str:
        if path not in self._skill_names:
            self._skill_names[path] = _skill_name(path)
        return self._skill_names[path]

    def contaminated(self) -> list[dict[str, Any]]:
        """The arms that had something else than they should, each with both sets, in a stable order."""
        common = self._common_skills()
        found = []
        for arm, pairs in sorted(self._seen.items()):
            for expected, loaded in sorted(pairs, key=repr):
                reasons = list(_differences(expected, loaded, common))
                if reasons:
                    found.append(_document(arm, expected, loaded, reasons))
                    break
        return found

    def _common_skills(self) -> Names:
        """Skills nobody declared that all agents had: they belong to the agent and make no difference between arms."""
        sets = [loaded.other_skills for pairs in self._seen.values() for _, loaded in pairs]
        return frozenset.intersection(*sets) if sets else frozenset()


def _differences(expected: Expected, loaded: Loaded, common: Names) -> Iterator[str]:
    yield from _named("skill", expected.skills, loaded.skills | (loaded.other_skills - common))
    if loaded.servers is not None:
        yield from _named("MCP server", expected.servers, loaded.servers)
    for path in sorted(loaded.foreign_instructions):
        yield f"instructions of '{path}', which is outside the workspace"


def _named(noun: str, expected: Names, loaded: Names) -> Iterator[str]:
    for name in sorted(loaded - expected):
        yield f"{noun} '{name}', which it should not have"
    for name in sorted(expected - loaded):
        yield f"no {noun} '{name}', which it should have"


def _document(arm: Arm, expected: Expected, loaded: Loaded, reasons: list[str]) -> dict[str, Any]:
    return {
        "code": "arm-contaminated",
        "variant": arm[0],
        "evalFile": arm[1],
        "model": arm[2],
        "expected": {"skills": sorted(expected.skills), "mcpServers": sorted(expected.servers)},
        "loaded": loaded.document(),
        "reasons": reasons,
    }


def contamination_error(item: Mapping[str, Any]) -> VallyError:
    """What is said about one item of `contaminated`."""
    arm = f"{item['variant']}, {item['evalFile']}, {item['model']}"
    sets = ((word, item.get(word)) for word in ("expected", "loaded"))
    return VallyError(
        f"its agent had {'; '.join(item['reasons'])}",
        where=arm,
        code="arm-contaminated",
        hints=[f"{word}: {_sets(value)}" for word, value in sets if isinstance(value, Mapping)],
    )


def _sets(sets: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}: {', '.join(map(str, values)) or 'none'}" for name, values in sets.items())


def _loaded(metadata: Mapping[str, Any], workspace: str | None) -> Loaded:
    servers = metadata.get("mcpServers")
    return Loaded(
        skills=_names(metadata.get("skillsLoaded")),
        servers=None if servers is None else _names(servers),
        foreign_instructions=frozenset(
            path for path in _names(metadata.get("instructions")) if _is_outside(path, workspace)
        ),
        other_skills=_names(metadata.get("otherSkills")),
    )


def _names(value: object) -> Names:
    return frozenset(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else frozenset()


def _is_outside(path: str, workspace: str | None) -> bool:
    pure = PurePath(path)
    return pure.is_absolute() and (workspace is None or not pure.is_relative_to(workspace))


def _skill_name(path: Path) -> str:
    try:
        return parse_skill(path).name
    except (SpecError, OSError, ValueError):
        return path.name
