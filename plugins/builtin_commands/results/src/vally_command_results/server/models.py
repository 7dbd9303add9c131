"""The answers about runs and outcomes, for the OpenAPI document; clients must ignore keys that they do not know."""

from __future__ import annotations

from typing import Any, Literal

from vally_command_results.server.model_parts import Answer, Cost, PageInfo, Ratio

Verdict = Literal["pass", "fail", "error", "skipped", "ungraded"]


class Run(Answer):
    """A run in a list."""

    id: str
    source: str
    kind: Literal["eval", "experiment", "grade"]
    name: str
    group: str | None
    experiment: str | None
    variant: str | None
    is_baseline: bool
    recorded_run_id: str | None
    models: list[str]
    eval_names: list[str]
    stimulus_count: int
    outcome_count: int
    pass_count: int
    fail_count: int
    error_count: int
    skipped_count: int
    pass_rate: Ratio
    mean_score: Ratio
    verdict: Literal["pass", "fail", "error", "partial", "incomplete"]
    complete: bool
    partial: bool
    stop_reason: str | None
    started_at: str | None
    duration_ms: int | None
    total_tokens: int
    cost: list[Cost]
    tool_version: str | None


class Runs(Answer):
    """A page of runs."""

    items: list[Run]
    page: PageInfo


class Eval(Answer):
    """An eval of a run."""

    name: str
    file_path: str | None
    model: str | None
    variant: str | None
    passed: bool | None
    overall_score: Ratio
    threshold: Ratio
    scoring_applied: bool | None
    stimuli_run: int | None
    stimuli_total: int | None
    duration_ms: int | None
    error: str | None
    eval_hash: str | None
    config_hash: str | None


class Sibling(Answer):
    """A variant of the same experiment."""

    id: str
    variant: str | None
    is_baseline: bool


class RunDetail(Run):
    """A run with everything about it."""

    stimuli: list[str]
    evals: list[Eval]
    config: dict[str, Any]
    siblings: list[Sibling]
    shard: str | None
    labels: dict[str, Any]
    imported_at: str


class Tokens(Answer):
    """Tokens of one trial."""

    input: int | None
    output: int | None
    total: int
    cache_read: int | None
    cache_write: int | None


class Outcome(Answer):
    """A trial in a list."""

    id: str
    run_id: str
    item_id: str
    eval_name: str
    eval_file_path: str | None
    stimulus: str
    model: str | None
    variant: str | None
    trial_index: int
    total_trials: int
    status: Literal["success", "error", "skipped"]
    verdict: Verdict
    passed: bool | None
    score: Ratio
    evidence: str | None
    error: str | None
    skip_reason: str | None
    started_at: str | None
    duration_ms: int | None
    wall_time_ms: int | None
    turns: int | None
    tool_calls: int | None
    agent_errors: int | None
    tokens: Tokens | None
    cost: Cost | None
    end_reason: str | None
    tags: dict[str, list[str]]
    grader_error: bool


class Outcomes(Answer):
    """A page of outcomes."""

    items: list[Outcome]
    page: PageInfo


class GraderResult(Answer):
    """A grader's result with its details."""

    name: str
    configured_name: str | None
    grader_type: str | None
    kind: str | None
    passed: bool
    score: float | None
    label: str | None
    status: str | None
    evidence: str | None
    metadata: dict[str, Any] | None
    details: list[GraderResult]


class Trial(Answer):
    """Another trial of the same stimulus."""

    id: str
    trial_index: int
    verdict: Verdict
    score: Ratio


class OutcomeDetail(Outcome):
    """A trial with everything but its trajectory."""

    threshold: Ratio
    prompt: str | None
    turns: Any
    """The prompts of a conversation; in lists the number of turns."""
    output: str | None
    output_truncated: bool
    executor: str | None
    skills_loaded: list[str]
    tool_breakdown: dict[str, int]
    graders: list[GraderResult]
    required_passed: bool | None
    has_trajectory: bool
    has_diff: bool
    diff_turns: list[int]
    artifact_count: int
    workspace_path: str | None
    warnings: list[str]
    error_info: dict[str, Any] | None
    trials: list[Trial]
    previous_id: str | None
    next_id: str | None


class Trajectory(Answer):
    """A trajectory with one page of its events."""

    outcome_id: str
    trajectory: dict[str, Any]
    page: PageInfo


class ChangedFile(Answer):
    """A file of a diff."""

    path: str
    old_path: str | None
    change: Literal["added", "modified", "deleted", "renamed"]
    additions: int
    deletions: int
    binary: bool


class Diff(Answer):
    """A unified diff, or why there is none."""

    outcome_id: str
    turn: int | None
    available: bool
    reason: str | None
    format: Literal["unified"]
    truncated: bool
    files: list[ChangedFile]
    text: str


class ToolCall(Answer):
    """A tool call; arguments and result are cut."""

    seq: int
    turn: int | None
    agent_id: str | None
    name: str
    call_id: str | None
    success: bool | None
    simulated: bool
    offset_ms: int | None
    duration_ms: int | None
    arguments: str | None
    result: str | None


class ToolCalls(Answer):
    """A page of tool calls."""

    items: list[ToolCall]
    page: PageInfo


class Artifact(Answer):
    """A file of a trial."""

    path: str
    size: int
    media_type: str


class Artifacts(Answer):
    """The files of a trial."""

    available: bool
    items: list[Artifact]
