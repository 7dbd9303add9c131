"""What a grader entry sees of a trajectory: the events of one conversation turn, of some agents, or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally.model.jsonio import parse_timestamp
from vally.model.metrics import compute_metrics
from vally.model.trajectory import Event, Metrics, Trajectory, TurnDiff
from vally.model.turns import partition_turns

Scope = str | Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A trajectory narrowed by `turn` and `scope`.

    `problem` is the evidence of a turn that was not recorded; `trajectory` is then the unnarrowed one. `empty_scope`
    says that a scope other than `all` selected no event.
    """

    trajectory: Trajectory
    problem: str | None = None
    empty_scope: bool = False


def narrow(trajectory: Trajectory, stimulus_turns: int, turn: int | None = None, scope: Scope = None) -> View:
    """Narrow a trajectory of a stimulus with `stimulus_turns` conversation turns to one turn and some agents."""
    scope = None if scope == "all" else scope
    if turn is None and scope is None:
        return View(trajectory=_with_metrics(trajectory))
    events = trajectory.events
    if turn is not None:
        events = _turn_events(events, stimulus_turns, turn)
        if not events:
            return View(trajectory=trajectory, problem=f"Turn {turn} is not recorded in this trajectory")
    selected = [event for event in events if in_scope(event, scope)]
    update: dict[str, Any] = {"events": selected, "metrics": view_metrics(selected)}
    if _has_own_output(trajectory, stimulus_turns, turn, scope):
        update["output"] = last_text(selected)
    if turn is not None:
        update.update(_turn_diff(trajectory, stimulus_turns, turn))
    view = trajectory.model_copy(update=update)
    return View(trajectory=view, empty_scope=scope is not None and not selected)


def _with_metrics(trajectory: Trajectory) -> Trajectory:
    if trajectory.metrics is not None:
        return trajectory
    return trajectory.model_copy(update={"metrics": compute_metrics(trajectory.events)})


def _turn_events(events: Sequence[Event], stimulus_turns: int, turn: int) -> list[Event]:
    if stimulus_turns <= 1:
        return list(events) if turn == 0 else []
    turns = partition_turns(events, stimulus_turns)
    if turns is None:
        return []
    return [event for event, own in zip(events, turns, strict=True) if own == turn]


def in_scope(event: Event, scope: Scope) -> bool:
    """Whether a scope selects an event: None and `all` every one, the others by agent."""
    if scope is None or scope == "all":
        return True
    if scope == "main":
        return event.agent_id is None
    if scope == "subagents":
        return event.agent_id is not None
    wanted = scope.get("agent") if isinstance(scope, Mapping) else scope
    names = (wanted,) if isinstance(wanted, str) else wanted
    return isinstance(names, Sequence) and (event.agent_id in names or event.agent_name in names)


def view_metrics(events: Sequence[Event]) -> Metrics:
    """Metrics of a narrowed view; the wall time lies between its first and last event, when both have a time."""
    metrics = compute_metrics(events)
    metrics.wall_time_ms = _wall_time(events)
    return metrics


def _wall_time(events: Sequence[Event]) -> int | None:
    if not events:
        return None
    first, last = parse_timestamp(events[0].timestamp), parse_timestamp(events[-1].timestamp)
    if first is None or last is None:
        return None
    return max(0, round((last - first).total_seconds() * 1000))


def _has_own_output(trajectory: Trajectory, stimulus_turns: int, turn: int | None, scope: Scope) -> bool:
    whole_turn = turn is None or stimulus_turns <= 1
    all_agents = scope is None or (scope == "main" and all(event.agent_id is None for event in trajectory.events))
    return not (whole_turn and all_agents)


def last_text(events: Sequence[Event]) -> str:
    """Content of the last `assistant_message` that is not blank, else the empty text."""
    for event in reversed(events):
        content = event.data.get("content")
        if event.type == "assistant_message" and isinstance(content, str) and content.strip():
            return content
    return ""


def final_output(events: Sequence[Event]) -> str:
    """The `output` of a trajectory: the last text of the main agent."""
    return last_text([event for event in events if event.agent_id is None])


def _turn_diff(trajectory: Trajectory, stimulus_turns: int, turn: int) -> dict[str, str | None]:
    """The fields `diff`, `diff_path` and `diff_error` of a view of one turn."""
    if turn == 0 and stimulus_turns <= 1 and len({event.turn for event in trajectory.events} - {None}) <= 1:
        return {}
    entries = [entry for entry in trajectory.turn_diffs or () if entry.turn == turn]
    entry = entries[0] if len(entries) == 1 else TurnDiff(turn=turn, status="captured")
    if entry.error is not None or entry.status == "failed":
        return {"diff": None, "diff_path": None, "diff_error": entry.error or "no reason was recorded"}
    return {"diff": entry.diff, "diff_path": entry.diff_path, "diff_error": None}
