"""The answers of the API, for its OpenAPI document. Unknown keys may be added; clients must ignore them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Ratio = float | None
Verdict = Literal["pass", "fail", "error", "skipped", "ungraded"]


class Answer(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ErrorBody(Answer):
    """What is wrong."""

    code: str
    message: str


class Error(Answer):
    """Every error."""

    error: ErrorBody


class PageInfo(Answer):
    """Where a page ends."""

    next_cursor: str | None
    limit: int
    has_more: bool
    total: int


class Cost(Answer):
    """An amount of `usd` or `aiu`."""

    unit: str
    amount: float


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


class MetricHead(Answer):
    """What a value is."""

    id: str
    unit: str
    direction: Literal["higher_is_better", "lower_is_better", "neutral"]
    aggregation: Literal["rate", "mean", "sum", "p50", "p95"]


class Metric(MetricHead):
    """A metric with its texts."""

    label: str
    description: str


class Metrics(Answer):
    """All metrics."""

    metrics: list[Metric]


class MatrixRow(Answer):
    """A row of a matrix."""

    key: str
    label: str
    group: str | None


class MatrixColumn(Answer):
    """A column of a matrix."""

    key: str
    label: str


class MatrixCell(Answer):
    """A value of a matrix."""

    row: str
    column: str
    value: float | None
    outcome_count: int
    flags: list[Literal["flaky", "errors", "partial", "low_count"]]


class Matrix(Answer):
    """A score matrix."""

    metric: MetricHead
    rows: list[MatrixRow]
    columns: list[MatrixColumn]
    cells: list[MatrixCell]
    truncated: bool


class RankedModel(Answer):
    """A model of a ranking."""

    rank: int
    model: str
    outcome_count: int
    pass_rate: Ratio
    mean_score: Ratio
    mean_duration_ms: float | None
    mean_turns: float | None
    mean_tool_calls: float | None
    input_tokens: int
    output_tokens: int
    total_tokens: int
    error_count: int
    cost: list[Cost] | None


class Ranking(Answer):
    """Models, the best first."""

    models: list[RankedModel]


class Grader(Answer):
    """A grader over outcomes."""

    name: str
    grader_type: str | None
    kind: str | None
    pass_count: int
    fail_count: int
    error_count: int
    pass_rate: Ratio
    mean_score: float | None
    stimulus_count: int
    sample_failure_evidence: list[str]
    sample_outcome_ids: list[str]


class Graders(Answer):
    """Graders, those that fail most first."""

    graders: list[Grader]


class GraderAcross(Grader):
    """A grader over runs."""

    run_count: int
    last_failed_run_id: str | None
    pass_rates: list[float]


class GradersAcross(Answer):
    """Graders over all runs."""

    graders: list[GraderAcross]


class Tool(Answer):
    """A tool over outcomes."""

    name: str
    call_count: int
    outcome_count: int
    error_count: int
    success_rate: Ratio
    mean_per_outcome: float
    mean_duration_ms: int | None
    simulated_count: int


class Tools(Answer):
    """Tools, the most called first."""

    tools: list[Tool]


class ComparedRun(Answer):
    """A run of a comparison."""

    id: str
    name: str
    models: list[str]


class Total(Answer):
    """The metric of a whole run."""

    run_id: str
    value: float | None
    delta: float | None


class ComparedValue(Answer):
    """A stimulus in one run."""

    run_id: str
    value: float | None
    outcome_count: int
    verdict: Verdict
    outcome_id: str


class ComparedRow(Answer):
    """A stimulus in all runs."""

    key: str
    eval_name: str
    stimulus: str
    model: str | None
    values: list[ComparedValue]
    change: Literal["fixed", "broken", "improved", "worse", "same"]


class ComparedMetric(Answer):
    """Another metric in all runs."""

    id: str
    values: list[float | None]
    delta: float | None
    better: bool | None


class Unmatched(Answer):
    """A stimulus that not all runs have."""

    key: str
    run_ids: list[str]


class Comparison(Answer):
    """Runs side by side."""

    base: str
    runs: list[ComparedRun]
    metric: MetricHead
    totals: list[Total]
    rows: list[ComparedRow]
    metrics: list[ComparedMetric]
    unmatched: list[Unmatched]
    counts: dict[str, int]


class Point(Answer):
    """A run of a trend."""

    run_id: str
    started_at: str | None
    value: float | None
    outcome_count: int
    partial: bool


class Series(Answer):
    """A group of a trend."""

    key: str
    label: str
    threshold: Ratio
    points: list[Point]


class Trends(Answer):
    """A metric over runs."""

    metric: MetricHead
    truncated: bool
    series: list[Series]


class Histogram(Answer):
    """Counts of one group."""

    key: str
    counts: list[int]
    p50: float
    p95: float
    min: float
    max: float


class Distribution(Answer):
    """A histogram of a run."""

    metric: MetricHead
    bins: list[dict[Literal["from", "to"], float]]
    series: list[Histogram]


class JudgedComparison(Answer):
    """A comparison that a judge made."""

    id: str
    group: str | None
    experiment: str | None
    baseline: str | None
    treatment: str | None
    eval_file: str | None
    model: str | None
    trial_count: int
    errored_count: int
    mean_score: float | None
    ci_low: float | None
    ci_high: float | None
    win_rate: float | None


class JudgedComparisons(Answer):
    """A page of judged comparisons."""

    items: list[JudgedComparison]
    page: PageInfo


class JudgedComparisonDetail(JudgedComparison):
    """A judged comparison with its record."""

    record: dict[str, Any]


class Facets(Answer):
    """Values for filter controls."""

    eval_names: list[str]
    models: list[str]
    variants: list[str]
    tags: dict[str, list[str]]
    grader_types: list[str]
    kinds: list[str]


class Health(Answer):
    """How the server is."""

    status: Literal["ok"]
    version: str
    mode: Literal["directory", "store", "directory+store"]
    run_count: int
    data_version: int
    schema_version: str
