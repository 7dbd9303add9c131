"""The tables as version 0001 makes them; never to be changed, later versions change what this one made."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, ForeignKey, Index, LargeBinary, MetaData, Table, UniqueConstraint

from vally_command_results.store.types import Int, Json, Key, Real, Str, Timestamp

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _required(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)


runs = Table(
    "runs",
    metadata,
    Column("id", Str, primary_key=True),
    Column("run_key", Str, nullable=False, unique=True),
    Column("group_id", Str),
    _required("kind", Str),
    _required("name", Str),
    _required("source", Str),
    Column("recorded_run_id", Str),
    Column("variant", Str),
    Column("experiment_name", Str),
    Column("shard", Str),
    _required("is_baseline", Boolean),
    Column("started_at", Timestamp),
    Column("completed_at", Timestamp),
    Column("duration_ms", Int),
    Column("tool_version", Str),
    _required("complete", Boolean),
    _required("partial", Boolean),
    Column("stop_reason", Str),
    Column("passed", Boolean),
    _required("had_execution_errors", Boolean),
    *(
        _required(name, Int)
        for name in ("outcome_count", "pass_count", "fail_count", "error_count", "skipped_count", "stimulus_count")
    ),
    Column("pass_rate", Real),
    Column("mean_score", Real),
    _required("total_tokens", Int),
    Column("cost", Json),
    _required("models", Json),
    Column("config", Json),
    Column("labels", Json),
    _required("content_sha256", Str),
    _required("byte_size", Int),
    _required("imported_at", Timestamp),
    Index(None, "started_at", "id"),
    Index(None, "group_id"),
)

evals = Table(
    "evals",
    metadata,
    Column("id", Key, primary_key=True),
    Column("run_id", Str, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    _required("name", Str),
    Column("file_path", Str),
    Column("variant", Str),
    Column("model", Str),
    Column("passed", Boolean),
    Column("overall_score", Real),
    Column("threshold", Real),
    Column("required_pass_rate", Real),
    Column("scoring_applied", Boolean),
    Column("stimuli_run", Int),
    Column("stimuli_total", Int),
    Column("duration_ms", Int),
    Column("error", Str),
    Column("eval_hash", Str),
    Column("config_hash", Str),
    UniqueConstraint("run_id", "file_path", "name", "variant", "model"),
    Index(None, "run_id"),
    Index(None, "name"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("id", Str, primary_key=True),
    Column("run_id", Str, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("eval_id", Key, ForeignKey("evals.id", ondelete="CASCADE")),
    _required("seq", Int),
    _required("item_id", Str),
    _required("stimulus", Str),
    Column("model", Str),
    Column("variant", Str),
    _required("trial_index", Int),
    _required("total_trials", Int),
    _required("status", Str),
    _required("verdict", Str),
    Column("score", Real),
    *(Column(name, Str) for name in ("evidence", "error", "skip_reason", "end_reason", "executor")),
    Column("started_at", Timestamp),
    Column("duration_ms", Int),
    Column("wall_time_ms", Int),
    *(
        Column(name, Int)
        for name in ("turn_count", "tool_call_count", "tool_error_count", "agent_error_count", "skill_activation_count")
    ),
    *(
        Column(name, Int)
        for name in (
            "input_tokens", "output_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens", "model_calls",
        )
    ),
    Column("cost_amount", Real),
    Column("cost_unit", Str),
    _required("grader_error", Boolean),
    _required("has_diff", Boolean),
    Column("output_excerpt", Str),
    Column("artifact_dir", Str),
    _required("search_text", Str),
    Index(None, "run_id", "seq"),
    Index(None, "run_id", "stimulus", "model", "trial_index"),
    Index(None, "stimulus", "model"),
    Index(None, "verdict"),
    Index(None, "started_at", "id"),
)  # fmt: skip

outcome_tags = Table(
    "outcome_tags",
    metadata,
    Column("outcome_id", Str, ForeignKey("outcomes.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Str, primary_key=True),
    Column("value", Str, primary_key=True),
    Index(None, "key", "value"),
)

grader_results = Table(
    "grader_results",
    metadata,
    Column("id", Key, primary_key=True),
    Column("outcome_id", Str, ForeignKey("outcomes.id", ondelete="CASCADE"), nullable=False),
    Column("parent_id", Key, ForeignKey("grader_results.id", ondelete="CASCADE")),
    _required("path", Str),
    _required("depth", Int),
    _required("name", Str),
    Column("configured_name", Str),
    Column("grader_type", Str),
    Column("kind", Str),
    Column("label", Str),
    Column("status", Str),
    _required("passed", Boolean),
    Column("score", Real),
    Column("evidence", Str),
    Column("metadata", Json),
    Index(None, "outcome_id"),
    Index(None, "name", "passed"),
    Index(None, "grader_type"),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("id", Key, primary_key=True),
    Column("outcome_id", Str, ForeignKey("outcomes.id", ondelete="CASCADE"), nullable=False),
    _required("seq", Int),
    Column("turn", Int),
    Column("agent_id", Str),
    Column("call_id", Str),
    _required("tool_name", Str),
    Column("success", Boolean),
    _required("simulated", Boolean),
    Column("offset_ms", Int),
    Column("duration_ms", Int),
    Column("arguments_excerpt", Str),
    Column("result_excerpt", Str),
    Index(None, "outcome_id", "seq"),
    Index(None, "tool_name"),
)

raw_records = Table(
    "raw_records",
    metadata,
    Column("run_id", Str, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Int, primary_key=True, autoincrement=False),
    Column("outcome_id", Str, ForeignKey("outcomes.id", ondelete="CASCADE"), index=True),
    Column("record_type", Str),
    _required("encoding", Str),
    _required("size", Int),
    _required("body", LargeBinary),
)

extra_files = Table(
    "extra_files",
    metadata,
    Column("run_id", Str, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Str, primary_key=True),
    _required("body", LargeBinary),
)

comparisons = Table(
    "comparisons",
    metadata,
    Column("id", Str, primary_key=True),
    Column("group_id", Str, index=True),
    *(Column(name, Str) for name in ("experiment_name", "baseline", "treatment", "eval_file", "model")),
    _required("trial_count", Int),
    _required("errored_count", Int),
    *(Column(name, Real) for name in ("mean_score", "ci_low", "ci_high", "win_rate")),
    _required("record", Json),
    _required("source", Str),
    _required("imported_at", Timestamp),
)

imports = Table(
    "imports",
    metadata,
    Column("id", Key, primary_key=True),
    _required("started_at", Timestamp),
    _required("finished_at", Timestamp),
    _required("source", Str),
    *(_required(name, Int) for name in ("imported", "updated", "unchanged", "failed")),
    _required("messages", Json),
)

store_meta = Table("store_meta", metadata, Column("key", Str, primary_key=True), _required("value", Str))
