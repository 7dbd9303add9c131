"""Grading and running as a library, without a run directory or a backend."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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

    Raises `ValueError` for an entry that is not a mapping with a `type`.
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
    return tuple(_entry(index, item) for index, item in enumerate(graders))


def _entry(index: int, item: Any) -> GraderEntry:
    known = {"type", "config", "name", "turn", "scope", "required", "weight"}
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        raise ValueError(f"graders[{index}] must be a mapping with a 'type'")
    unknown = sorted(set(item) - known)
    if unknown:
        raise ValueError(f"graders[{index}]: unknown key '{unknown[0]}'")
    return GraderEntry(
        type=item["type"],
        config=item.get("config") or {},
        name=item.get("name"),
        turn=item.get("turn"),
        scope=item.get("scope"),
        required=bool(item.get("required", False)),
        weight=item.get("weight"),
    )
