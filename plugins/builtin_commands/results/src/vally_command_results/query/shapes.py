"""Rows of the store as answers show them."""

from __future__ import annotations

from typing import Any


def run_document(row: Any) -> dict[str, Any]:
    """A run in a list."""
    return {
        "id": row.id,
        "source": row.source,
        "kind": row.kind,
        "name": row.name,
        "group": row.group_id,
        "experiment": row.experiment_name,
        "variant": row.variant,
        "isBaseline": row.is_baseline,
        "recordedRunId": row.recorded_run_id,
        "models": row.models,
        "stimulusCount": row.stimulus_count,
        "outcomeCount": row.outcome_count,
        "passCount": row.pass_count,
        "failCount": row.fail_count,
        "errorCount": row.error_count,
        "skippedCount": row.skipped_count,
        "passRate": row.pass_rate,
        "meanScore": row.mean_score,
        "verdict": run_verdict(row),
        "complete": row.complete,
        "partial": row.partial,
        "stopReason": row.stop_reason,
        "startedAt": row.started_at,
        "durationMs": row.duration_ms,
        "totalTokens": row.total_tokens,
        "cost": row.cost or [],
        "toolVersion": row.tool_version,
    }


def run_verdict(row: Any) -> str:
    """`incomplete` without a summary, then `partial`, then `error` for a pass with errors, else `pass` or `fail`.

    Of a variant that was not selected nothing ran, so that it cannot be said to have passed.
    """
    if not row.complete or (row.kind == "experiment" and row.passed is None and not row.outcome_count):
        return "incomplete"
    if row.partial:
        return "partial"
    passed = row.passed if row.passed is not None else row.fail_count == 0 and row.error_count == 0
    if passed:
        return "error" if row.had_execution_errors or row.error_count else "pass"
    return "fail"


def outcome_document(row: Any) -> dict[str, Any]:
    """An outcome in a list; the row has the columns of the outcome and `eval_name`, `file_path`."""
    tokens = None
    if row.total_tokens is not None:
        tokens = {
            "input": row.input_tokens,
            "output": row.output_tokens,
            "total": row.total_tokens,
            "cacheRead": row.cache_read_tokens,
            "cacheWrite": row.cache_write_tokens,
        }
    return {
        "id": row.id,
        "runId": row.run_id,
        "itemId": row.item_id,
        "evalName": row.eval_name,
        "evalFilePath": row.file_path,
        "stimulus": row.stimulus,
        "model": row.model,
        "variant": row.variant,
        "trialIndex": row.trial_index,
        "totalTrials": row.total_trials,
        "status": row.status,
        "verdict": row.verdict,
        "passed": {"pass": True, "fail": False}.get(row.verdict),
        "score": row.score,
        "evidence": row.evidence,
        "error": row.error,
        "skipReason": row.skip_reason,
        "startedAt": row.started_at,
        "durationMs": row.duration_ms,
        "wallTimeMs": row.wall_time_ms,
        "turns": row.turn_count,
        "toolCalls": row.tool_call_count,
        "agentErrors": row.agent_error_count,
        "tokens": tokens,
        "cost": None if row.cost_unit is None else {"unit": row.cost_unit, "amount": row.cost_amount},
        "endReason": row.end_reason,
        "graderError": row.grader_error,
    }


def call_document(row: Any) -> dict[str, Any]:
    """A tool call."""
    return {
        "seq": row.seq,
        "turn": row.turn,
        "agentId": row.agent_id,
        "name": row.tool_name,
        "callId": row.call_id,
        "success": row.success,
        "simulated": row.simulated,
        "offsetMs": row.offset_ms,
        "durationMs": row.duration_ms,
        "arguments": row.arguments_excerpt,
        "result": row.result_excerpt,
    }


def comparison_document(row: Any) -> dict[str, Any]:
    """A judged comparison in a list."""
    return {
        "id": row.id,
        "group": row.group_id,
        "experiment": row.experiment_name,
        "baseline": row.baseline,
        "treatment": row.treatment,
        "evalFile": row.eval_file,
        "model": row.model,
        "trialCount": row.trial_count,
        "erroredCount": row.errored_count,
        "meanScore": row.mean_score,
        "ciLow": row.ci_low,
        "ciHigh": row.ci_high,
        "winRate": row.win_rate,
    }
