"""Trajectories, events and metrics: the JSON shapes of the records chapter, snake_case in Python, camelCase on disk."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class RecordModel(BaseModel):
    """Base of everything that is written down: unknown keys are kept, names on disk are camelCase."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, alias_generator=to_camel)


class Event(RecordModel):
    """One thing that happened; `turn` is the 0-based conversation turn, `data` depends on `type`."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, alias_generator=to_camel)

    type: str
    timestamp: str | None = None
    turn: int | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)


class Cost(RecordModel):
    """An amount in a unit of a provider."""

    provider: str
    unit: str
    amount: float


class ModelTokens(RecordModel):
    """Tokens of one model."""

    input_tokens: int = 0
    output_tokens: int = 0
    call_count: int = 0


class TokenUsage(RecordModel):
    """Sums over `token_usage` events; cache tokens are informative and never added to the total."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    call_count: int = 0
    by_model: dict[str, ModelTokens] = Field(default_factory=dict)
    cost: Cost | None = None
    costs: list[Cost] | None = None


class Metrics(RecordModel):
    """Counts over events; `wall_time_ms` is set by executors and importers, everything else is computed."""

    token_usage: TokenUsage | None = Field(default_factory=TokenUsage)
    tool_call_count: int | None = 0
    tool_call_breakdown: dict[str, int] | None = Field(default_factory=dict)
    simulated_tool_call_count: int | None = 0
    skill_activation_count: int | None = 0
    skill_activation_breakdown: dict[str, int] | None = Field(default_factory=dict)
    turn_count: int | None = 0
    error_count: int | None = 0
    wall_time_ms: int | None = None


class TurnDiff(RecordModel):
    """Diff of one conversation turn; `status` is `captured` or `failed`."""

    turn: int
    status: str | None = None
    diff: str | None = None
    diff_path: str | None = None
    error: str | None = None


class Trajectory(RecordModel):
    """What one agent did in one trial.

    `stimulus` is the effective stimulus with spec keys; `work_dir` the graded workspace. `workspace_patch` lives in
    memory only; on disk it is the file `workspace.patch`.
    """

    id: str = ""
    stimulus: dict[str, Any] = Field(default_factory=dict)
    events: list[Event] = Field(default_factory=list)
    metrics: Metrics | None = None
    output: str = ""
    work_dir: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    end_reason: str | None = None
    artifact_dir: str | None = None
    artifact_dir_strict: bool | None = None
    assets_dir: str | None = None
    diff: str | None = None
    diff_path: str | None = None
    diff_error: str | None = None
    turn_diffs: list[TurnDiff] | None = None
    workspace_patch: str | None = Field(default=None, exclude=True)
    workspace_status: str | None = None
    session_path: str | None = None
    truncated: bool | None = None
    trajectory_path: str | None = None
    redactions: int | None = None
    imported_from: dict[str, Any] | None = None
