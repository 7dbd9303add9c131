"""What a grader entry with `turn` and `scope` sees."""

from __future__ import annotations

from typing import Any

import pytest

from vally.model.trajectory import Event, Metrics, Trajectory, load_trajectory
from vally.model.views import final_output, narrow


def _say(text: str, **fields: Any) -> Event:
    return Event(type="assistant_message", data={"content": text}, **fields)


TWO_TURNS = [
    Event(type="user_message", turn=0, timestamp="2026-01-01T00:00:00Z"),
    _say("first", turn=0, timestamp="2026-01-01T00:00:01.500Z"),
    _say("helper", turn=0, agent_id="h1", agent_name="helper"),
    Event(type="user_message", turn=1, timestamp="2026-01-01T00:00:10Z"),
    _say("second", turn=1, timestamp="2026-01-01T00:00:12Z"),
    _say("  ", turn=1, timestamp="2026-01-01T00:00:13Z"),
]


def _trajectory(events: list[Event] = TWO_TURNS, **fields: Any) -> Trajectory:
    return Trajectory(**{"events": events, "output": "recorded", **fields})


def test_without_turn_and_scope_everything_is_seen() -> None:
    metrics = Metrics(turn_count=7)
    trajectory = _trajectory(metrics=metrics, diff="d")
    view = narrow(trajectory, 2, None, None)
    assert view.trajectory is trajectory
    assert not view.empty_scope


def test_missing_metrics_are_computed() -> None:
    view = narrow(_trajectory(), 2, None, "all")
    assert view.trajectory.metrics is not None
    assert view.trajectory.metrics.turn_count == 0


@pytest.mark.parametrize(
    ("turn", "scope", "texts", "output"),
    [
        (0, None, ["first", "helper"], "helper"),
        (1, None, ["second", "  "], "second"),
        (0, "main", ["first"], "first"),
        (0, "subagents", ["helper"], "helper"),
        (None, "main", ["first", "second", "  "], "second"),
        (None, "subagents", ["helper"], "helper"),
        (None, {"agent": "h1"}, ["helper"], "helper"),
        (None, {"agent": ["x", "helper"]}, ["helper"], "helper"),
        (None, "helper", ["helper"], "helper"),
    ],
)
def test_narrowed_views(turn: int | None, scope: Any, texts: list[str], output: str) -> None:
    view = narrow(_trajectory(), 2, turn, scope)
    seen = [event.data["content"] for event in view.trajectory.events if event.type == "assistant_message"]
    assert seen == texts
    assert view.trajectory.output == output
    assert view.problem is None
    assert not view.empty_scope


@pytest.mark.parametrize(("stimulus_turns", "turn"), [(2, 2), (1, 1)])
def test_turns_that_were_not_recorded(stimulus_turns: int, turn: int) -> None:
    view = narrow(_trajectory(), stimulus_turns, turn, "nobody")
    assert view.problem == f"Turn {turn} is not recorded in this trajectory"
    assert not view.empty_scope


@pytest.mark.parametrize(("turn", "scope"), [(None, "nobody"), (1, "subagents"), (None, {"agent": 5})])
def test_scopes_that_select_nothing(turn: int | None, scope: Any) -> None:
    view = narrow(_trajectory(), 2, turn, scope)
    assert view.empty_scope
    assert view.problem is None
    assert view.trajectory.events == []
    assert view.trajectory.output == ""


def test_turn_0_of_a_single_turn_stimulus_keeps_the_output() -> None:
    view = narrow(_trajectory(), 1, 0, None)
    assert view.trajectory.output == "recorded"
    assert len(view.trajectory.events) == len(TWO_TURNS)


def test_scope_main_keeps_the_output_when_there_is_no_other_agent() -> None:
    assert narrow(_trajectory([_say("said")]), 1, None, "main").trajectory.output == "recorded"
    assert narrow(_trajectory([_say("said", turn=1)]), 2, 1, "main").trajectory.output == "said"


@pytest.mark.parametrize(("turn", "wall_time"), [(1, 3000), (0, None)])
def test_metrics_are_those_of_the_view(turn: int, wall_time: int | None) -> None:
    events = [*TWO_TURNS, Event(type="tool_call", turn=0, data={"toolName": "x"})]
    metrics = narrow(_trajectory(events, metrics=Metrics(wall_time_ms=1, turn_count=9)), 2, turn).trajectory.metrics
    assert metrics is not None
    assert metrics.wall_time_ms == wall_time
    assert metrics.turn_count == 0
    assert metrics.tool_call_count == (1 if turn == 0 else 0)


def test_wall_time_is_never_negative() -> None:
    events = [_say("a", timestamp="2026-01-01T00:00:05Z"), _say("b", timestamp="2026-01-01T00:00:00Z")]
    metrics = narrow(_trajectory(events), 1, 0).trajectory.metrics
    assert metrics is not None
    assert metrics.wall_time_ms == 0


@pytest.mark.parametrize(
    ("entries", "diff", "path", "error"),
    [
        ([{"turn": 1, "status": "captured", "diff": "+x"}], "+x", None, None),
        ([{"turn": 1, "diffPath": "a/turn-1.diff"}], None, "a/turn-1.diff", None),
        ([{"turn": 1, "status": "failed", "error": "git"}], None, None, "git"),
        ([{"turn": 1, "status": "failed"}], None, None, "no reason was recorded"),
        ([{"turn": 0, "diff": "other"}], None, None, None),
        ([{"turn": 1, "diff": "a"}, {"turn": 1, "diff": "b"}], None, None, None),
        ("nonsense", None, None, None),
    ],
)
def test_a_turn_has_its_own_diff(entries: Any, diff: str | None, path: str | None, error: str | None) -> None:
    events = [{"type": "custom", "turn": 0}, {"type": "custom", "turn": 1}]
    trajectory = load_trajectory({"events": events, "diff": "run", "turnDiffs": entries})
    view = narrow(trajectory, 2, 1).trajectory
    assert (view.diff, view.diff_path, view.diff_error) == (diff, path, error)


def test_turn_0_has_the_run_diff_only_when_there_is_one_turn() -> None:
    one = _trajectory([Event(type="custom", turn=0)], diff="run")
    assert narrow(one, 1, 0).trajectory.diff == "run"
    assert narrow(one, 2, 0).trajectory.diff is None
    assert narrow(_trajectory(diff="run"), 1, 0).trajectory.diff is None


def test_final_output_is_that_of_the_main_agent() -> None:
    assert final_output(TWO_TURNS) == "second"
    assert final_output([_say("x", agent_id="a")]) == ""


def test_the_trajectory_itself_is_not_changed() -> None:
    trajectory = _trajectory(diff="run")
    before = trajectory.model_dump()
    narrow(trajectory, 2, 1, "main")
    assert trajectory.model_dump() == before
