"""What every trajectory has that an executor returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vally.model.trajectory import Trajectory
    from vally.run.inputs import ExecutorOptions


def check_trajectory(trajectory: Trajectory, options: ExecutorOptions, *, prompts: int) -> None:
    """Assert what every finished trajectory has."""
    from vally.model.jsonio import parse_timestamp
    from vally.model.metrics import compute_metrics
    from vally.model.views import final_output

    assert trajectory.id == options.trial_id
    assert trajectory.work_dir == str(options.work_dir)
    assert trajectory.stimulus.get("prompt"), "stimulus.prompt must be set"
    for key in ("model", "executor", "skillsLoaded", "startedAt", "completedAt", "sessionID"):
        assert key in trajectory.metadata, f"metadata.{key} is missing"
    assert trajectory.end_reason, "endReason must be set"
    assert trajectory.output == final_output(trajectory.events), "output must be the final assistant text"
    assert trajectory.metrics is not None
    assert trajectory.metrics.wall_time_ms is not None, "metrics.wallTimeMs must be set"
    computed = compute_metrics(trajectory.events).model_copy(update={"wall_time_ms": trajectory.metrics.wall_time_ms})
    assert trajectory.metrics == computed, "metrics must be those of the events"
    own = [item for item in trajectory.events if item.agent_id is None]
    assert sum(item.type == "user_message" for item in own) == prompts, "one user_message per prompt"
    assert sum(item.type == "turn_end" for item in own) >= prompts, "a turn_end per completed response"
    for item in trajectory.events:
        assert parse_timestamp(item.timestamp) is not None, f"{item.type} without timestamp"
        assert prompts == 1 or item.turn is not None, f"{item.type} without turn"
    _check_calls(trajectory)
    for name in ("diff", "diff_path", "turn_diffs", "artifact_dir", "workspace_patch"):
        assert getattr(trajectory, name) is None, f"the executor must not set {name}"


def _check_calls(trajectory: Trajectory) -> None:
    called: set[object] = set()
    answered: set[object] = set()
    for item in trajectory.events:
        call_id = item.data.get("toolCallId")
        if item.type == "tool_call":
            assert call_id, "tool_call without toolCallId"
            assert call_id not in called, f"tool call id {call_id!r} is not unique"
            called.add(call_id)
        elif item.type == "tool_result":
            assert call_id in called, f"tool_result {call_id!r} without an earlier tool_call"
            assert call_id not in answered, f"two results of tool call {call_id!r}"
            answered.add(call_id)
