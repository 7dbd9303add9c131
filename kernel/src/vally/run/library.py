"""Grading and running as a library, without a run directory or a backend."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import GraderEntry, Scoring, Stimulus
from vally.run.grading import GradingRequest

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.trajectory import Trajectory
    from vally.run.inputs import JudgeClient


def library_request(
    trajectory: Trajectory,
    graders: Sequence[Mapping[str, Any]],
    *,
    stimulus: Stimulus | None = None,
    scoring: Scoring | None = None,
    host: PluginHost | None = None,
    judge: JudgeClient | None = None,
    run_dir: Path | None = None,
    spec_dir: Path | None = None,
) -> GradingRequest:
    """A grading request for a recorded or hand-made trajectory; graders' processes run on this machine.

    Raises `ValueError` for an entry that is not a mapping with a `type`, and for a name that two entries have.
    """
    from vally.host import PluginHost
    from vally.run.late_runner import LateRunner

    # As a library there is no command line that could hand the environment in, and commands need at least a PATH.
    environ = MappingProxyType(os.environ)
    base = stimulus or stimulus_of(trajectory)
    plugins = host or PluginHost()
    # Who grades many trajectories with one host gives the same graders each time: they are prepared once.
    entries = plugins.memo(("library", repr(graders)), partial(_entries, graders))
    return GradingRequest(
        trajectory=trajectory,
        stimulus=_with_graders(base, entries),
        host=plugins,
        runner=LateRunner(environ),
        env=environ,
        spec_dir=spec_dir or Path.cwd(),
        scoring=scoring or Scoring(),
        judge=judge,
        run_dir=run_dir,
    )


def stimulus_of(trajectory: Trajectory) -> Stimulus:
    """The stimulus that a trajectory carries, as far as graders need it."""
    document = trajectory.stimulus
    turns = tuple(str(turn) for turn in document.get("turns") or ())
    prompt = str(document.get("prompt") or "\n\n".join(turns))
    return Stimulus(
        name=str(document.get("name") or "stimulus"),
        prompt=prompt,
        turns=turns or (prompt,),
        has_turns=bool(turns),
        rubric=tuple(str(item) for item in document.get("rubric") or ()),
        golden_patch=_inline(document.get("golden_patch")),
        document=document,
    )


def _inline(golden: object) -> Mapping[str, object] | None:
    # A record may come from anywhere, so the paths in it are not followed.
    return {"inline": golden["inline"]} if isinstance(golden, Mapping) and "inline" in golden else None


def _with_graders(stimulus: Stimulus, entries: tuple[GraderEntry, ...]) -> Stimulus:
    from dataclasses import replace

    return replace(stimulus, graders=entries)


def _entries(graders: Sequence[Mapping[str, Any]]) -> tuple[GraderEntry, ...]:
    entries = tuple(_entry(index, item) for index, item in enumerate(graders))
    names = [entry.name for entry in entries if entry.name is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"graders: the name '{twice}' occurs twice")
    return entries


def _entry(index: int, item: Any) -> GraderEntry:
    known = {"type", "config", *_FIELDS}
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        raise ValueError(f"graders[{index}] must be a mapping with a 'type'")
    unknown = sorted(set(item) - known)
    if unknown:
        raise ValueError(f"graders[{index}]: unknown key '{unknown[0]}'")
    fields, problem = _fields(item)
    return GraderEntry(type=item["type"], config=item.get("config") or {}, problem=problem, **fields)


def _fields(item: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The fields beside type and config, and what is wrong with the first that is; a wrong one is left out."""
    fields = {key: item[key] for key in _FIELDS if item.get(key) is not None}
    wrong = [key for key, value in fields.items() if not _FIELDS[key][0](value)]
    problem = f"'{wrong[0]}' must be {_FIELDS[wrong[0]][1]}" if wrong else None
    return {key: value for key, value in fields.items() if key not in wrong}, problem


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_turn(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_scope(value: object) -> bool:
    if not isinstance(value, Mapping):
        return _is_name(value)
    agents = value.get("agent")
    names = agents if isinstance(agents, list | tuple) else [agents]
    return set(value) == {"agent"} and bool(names) and all(map(_is_name, names))


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": (_is_name, "a string that is not blank"),
    "turn": (_is_turn, "an integer >= 0"),
    "scope": (_is_scope, "all, main, subagents, an agent name or {agent: name or list of names}"),
    "required": (lambda value: isinstance(value, bool), "true or false"),
    "weight": (_is_weight, "a number >= 0"),
}
