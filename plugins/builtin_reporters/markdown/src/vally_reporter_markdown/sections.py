"""The parts of the report: its head, an eval, and a trial that is worth showing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally import (
    DEFAULT_BACKEND,
    eval_figures,
    eval_table,
    markdown_cell,
    markdown_fence,
    markdown_name,
    plural,
    report_duration,
    resolve_grade_pass,
    run_verdict,
    two_decimals,
)
from vally_reporter_markdown.tables import NO_VALUE, grader_table

if TYPE_CHECKING:
    from vally import EvalSummary, RunStart, RunSummary, TrialResult


def head(start: RunStart, summary: RunSummary) -> Iterator[str]:
    """Title, verdict, facts and the table of evals."""
    judges = _joined(item.judge_model for item in start.evals)
    yield "# Vally eval results"
    yield ""
    yield run_verdict(summary)
    yield ""
    times = f"Started: {summary.started_at} · Duration: {report_duration(summary.duration_ms)}"
    yield f"- Run: {markdown_cell(summary.run_id)} · {times}"
    backend = "" if start.backend in (None, DEFAULT_BACKEND) else f" · Backend: {markdown_cell(start.backend)}"
    yield f"- Executor: {_joined(item.executor for item in start.evals)}{backend}"
    yield f"- Model: {_joined(item.model for item in start.evals)} · Judge model: {judges}"
    yield f"- Vally: {markdown_cell(start.version)}"
    yield ""
    yield from eval_table(summary.evals, skip_grade=start.options.skip_grade)


def eval_head(item: EvalSummary) -> Iterator[str]:
    """Heading of an eval, why it passed or not, and its figures over trials and stimuli."""
    yield ""
    yield f"## {markdown_name(item.name)} ({markdown_cell(item.model)})"
    yield ""
    error = f" (first error: {markdown_cell(item.error)})" if item.error else ""
    for line in (f"{markdown_cell(item.reason)}{error}", " · ".join(eval_figures(item))):
        if line:
            yield line
            yield ""


def trial_section(result: TrialResult, threshold: float | None) -> Iterator[str]:
    """Figures, graders and output of one trial."""
    number = f": trial {result.trial_index + 1}/{result.total_trials}" if result.total_trials > 1 else ""
    yield ""
    yield f"### {markdown_name(result.stimulus)}{number}"
    yield ""
    yield _trial_line(result, threshold)
    if result.grade_result is not None and result.grade_result.details:
        yield ""
        yield from grader_table(result.grade_result.details)
    output = result.trajectory.output if result.trajectory else ""
    if output.strip():
        # Without the blank lines the fence would be read as HTML.
        yield from ("", "<details><summary>Agent output</summary>", "", markdown_fence(output), "", "</details>")


def _trial_line(result: TrialResult, threshold: float | None) -> str:
    if result.status == "error":
        return f"❌ ERROR: {markdown_cell(result.error or 'unknown error')}"
    if result.status == "skipped":
        return f"⏭️ SKIPPED: {markdown_cell(result.skip_reason or 'no reason given')}"
    return " · ".join([*_grade_facts(result, threshold), *_metric_facts(result), *_end_facts(result)])


def _grade_facts(result: TrialResult, threshold: float | None) -> Iterator[str]:
    if result.grade_result is not None:
        if resolve_grade_pass(result.grade_result, threshold) is None:
            yield "❌ ERROR: a grader reached no verdict"
        yield f"Score {two_decimals(result.grade_result.score)}"


def _metric_facts(result: TrialResult) -> Iterator[str]:
    metrics = result.trajectory.metrics if result.trajectory else None
    if metrics is not None:
        yield plural(metrics.turn_count or 0, "turn")
        yield plural(metrics.tool_call_count or 0, "tool call")
        yield plural(metrics.token_usage.total_tokens if metrics.token_usage else 0, "token")


def _end_facts(result: TrialResult) -> Iterator[str]:
    yield report_duration(result.duration_ms)
    if result.trajectory is not None and result.trajectory.end_reason:
        yield f"end reason: {markdown_cell(result.trajectory.end_reason)}"


def _joined(values: Iterator[str]) -> str:
    return ", ".join(markdown_cell(value) for value in dict.fromkeys(values)) or NO_VALUE
