"""The answers about metrics, and tables over runs and outcomes, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from vally_command_results.server.model_parts import Answer, Cost, PageInfo, Ratio
from vally_command_results.server.models import Verdict


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
