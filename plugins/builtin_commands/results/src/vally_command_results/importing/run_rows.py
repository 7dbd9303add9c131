"""The rows of a run and of its evals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vally import parse_json, timestamp
from vally_command_results.importing.finding import PROVENANCE_NAME
from vally_command_results.importing.run_facts import RunFacts
from vally_command_results.importing.values import clean, flag, real, text, whole
from vally_command_results.recorded import items, mapping

Row = dict[str, Any]
EvalKey = tuple[str, str, str, str]
"""File, name, variant and model."""


def run_row(facts: RunFacts) -> Row:
    """The row of a run before its outcomes are counted."""
    summary = mapping(facts.summary)
    experiment, files = facts.experiment, facts.found.experiment
    is_experiment = facts.kind == "experiment"
    baseline = experiment.get("baseline", files.head.get("baseline"))
    return {
        "id": facts.key[:32],
        "run_key": facts.key,
        "group_id": text(experiment.get("runId")) if is_experiment else None,
        "kind": facts.kind,
        "name": _name(facts, summary),
        "source": str(text(facts.found.source)),
        "recorded_run_id": facts.recorded_run_id,
        "variant": facts.variant,
        "experiment_name": text(experiment.get("name")) if is_experiment else None,
        "shard": files.shard or None if is_experiment else None,
        "is_baseline": is_experiment and baseline is not None and baseline == facts.variant,
        "started_at": facts.started_at,
        "completed_at": facts.completed_at,
        "duration_ms": whole(summary.get("durationMs")),
        "tool_version": text(facts.found.manifest.get("toolVersion")) or text(files.head.get("vallyVersion")),
        "complete": facts.complete,
        "partial": flag(summary.get("partial")) or False,
        "stop_reason": text(summary.get("stopReason")),
        "passed": flag(summary.get("passed")),
        "had_execution_errors": flag(summary.get("hadExecutionErrors")) or False,
        "config": clean(_config(facts)),
        "labels": clean(mapping(facts.found.manifest.get("labels"))),
        "content_sha256": facts.sha256,
        "byte_size": facts.size,
        "imported_at": timestamp(),
        "outcome_count": 0, "pass_count": 0, "fail_count": 0, "error_count": 0, "skipped_count": 0, "stimulus_count": 0,
        "pass_rate": None, "mean_score": None, "total_tokens": 0, "cost": [], "models": [],
    }  # fmt: skip


def _name(facts: RunFacts, summary: Mapping[str, Any]) -> str:
    if facts.kind == "experiment":
        return f"{text(facts.experiment.get('name')) or '(unnamed)'} / {facts.variant}"
    names = {str(item.get("name")) for item in map(mapping, items(summary.get("evals"))) if item.get("name")}
    if not names and facts.first is not None and facts.first.get("evalName"):
        names = {str(facts.first["evalName"])}
    if len(names) == 1:
        return text(next(iter(names))) or "(unnamed)"
    return f"{len(names)} evals" if names else "(unnamed)"


def _config(facts: RunFacts) -> Row:
    manifest = facts.found.manifest
    # Parameters are stored as hashes; nothing else of a manifest is a secret.
    options = mapping(manifest.get("options")) or None
    return {"options": options, "seed": manifest.get("seed"), "plugins": manifest.get("plugins"), "plan": _plan(facts)}


def _plan(facts: RunFacts) -> Any:
    return facts.found.experiment.plan or None if facts.kind == "experiment" else None


class EvalRows:
    """The evals of a run: those of its summary, and those that only its records name."""

    def __init__(self, facts: RunFacts, run_id: str) -> None:
        self._run_id = run_id
        self._rows: dict[EvalKey, Row] = {}
        self._hashes = {str(record.get("evalFile")): record for record in _provenance(facts)}
        self._block = mapping((facts.first or {}).get("experiment"))
        for item in map(mapping, items(mapping(facts.summary).get("evals"))):
            self._rows[_key(item, item.get("name"), "evalFilePath")] = self._from_summary(item)
        for item in map(mapping, items(facts.found.experiment.plan.get("evals"))):
            self._thresholds_from_plan(item, facts)

    def _thresholds_from_plan(self, item: Mapping[str, Any], facts: RunFacts) -> None:
        if facts.kind != "experiment" or item.get("variant") != facts.variant or facts.summary is not None:
            return
        key = _key(item, item.get("evalName"), "evalFile")
        self._rows.setdefault(key, self._row(key) | {"threshold": real(item.get("threshold"))})

    def of(self, record: Mapping[str, Any]) -> Row:
        """The row of the eval of a record, made when nothing else names it."""
        key = _key(record, record.get("evalName"), "evalFilePath")
        return self._rows.setdefault(key, self._row(key))

    def rows(self) -> Iterable[Row]:
        """All rows so far."""
        return self._rows.values()

    def _row(self, key: EvalKey) -> Row:
        file, name, variant, model = key
        hashes = mapping(self._hashes.get(file)) or (self._block if self._block.get("evalFile") == file else {})
        unknown = (
            "passed", "overall_score", "threshold", "required_pass_rate", "scoring_applied", "stimuli_run",
            "stimuli_total", "duration_ms", "error",
        )  # fmt: skip
        return {
            "run_id": self._run_id, "name": name, "file_path": file or None, "variant": variant or None,
            "model": model or None,
            **dict.fromkeys(unknown),
            "eval_hash": text(hashes.get("evalHash")), "config_hash": text(hashes.get("configHash")),
        }  # fmt: skip

    def _from_summary(self, item: Mapping[str, Any]) -> Row:
        return self._row(_key(item, item.get("name"), "evalFilePath")) | {
            "passed": flag(item.get("passed")),
            "overall_score": real(item.get("overallScore")),
            "threshold": real(item.get("threshold")),
            "required_pass_rate": real(item.get("requiredPassRate")),
            "scoring_applied": flag(item.get("scoringApplied")),
            "stimuli_run": whole(item.get("stimuliRun")),
            "stimuli_total": whole(item.get("stimuliTotal")),
            "duration_ms": whole(item.get("durationMs")),
            "error": text(item.get("error")),
        }


def _key(item: Mapping[str, Any], name: object, file: str) -> EvalKey:
    values = (item.get(file), name, item.get("variant"), item.get("model"))
    path, label, variant, model = (text(value) or "" for value in values)
    return path, label or "(unnamed)", variant, model


def _provenance(facts: RunFacts) -> Iterable[Mapping[str, Any]]:
    path = facts.found.path.parent / PROVENANCE_NAME
    try:
        raw = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        return
    for line in raw.splitlines():
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
