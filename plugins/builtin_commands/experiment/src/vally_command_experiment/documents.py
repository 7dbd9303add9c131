"""The files of an experiment beside its records: plan, manifests, provenance and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vally import DEFAULT_JUDGE_MODEL, NO_MODEL, RunSummary, __version__, dump_record, timestamp
from vally_command_experiment.planning import Experiment
from vally_command_experiment.shards import Shard

Document = dict[str, Any]
PLAN_NAME = "plan-snapshot.json"
SHARD_MANIFEST_NAME = "shard-manifest.json"
MANIFEST_NAME = "experiment-manifest.json"
SUMMARY_NAME = "experiment-summary.json"
PROVENANCE_NAME = "run-summary.jsonl"
COMPARISONS_NAME = "comparisons.jsonl"


def plan_snapshot(experiment: Experiment, threshold: float | None) -> Document:
    """The whole plan, before filters and shards, so that all shards of a run hold the same.

    `threshold` is that of the command line, which holds for all evals, also when shards are merged.
    """
    return {
        "type": "experiment-plan-snapshot",
        "version": 1,
        "vallyVersion": __version__,
        "planDigest": experiment.plan_digest,
        "evals": [_planned_eval(item, threshold) for item in experiment.specs],
    }


def _planned_eval(item: Any, threshold: float | None) -> Document:
    spec = item.spec
    given = spec.scoring.threshold if threshold is None else threshold
    rate = {} if spec.scoring.pass_rate is None else {"passRate": spec.scoring.pass_rate}
    return {
        "evalName": spec.name,
        "evalFile": item.eval_file,
        "variant": item.variant,
        "model": spec.defaults.model or NO_MODEL,
        "executor": spec.defaults.executor.name,
        "judgeModel": spec.defaults.judge_model or DEFAULT_JUDGE_MODEL,
        "runs": 1 if spec.defaults.runs is None else spec.defaults.runs,
        **({} if given is None else {"threshold": given}),
        **rate,
        "plannedStimulusCount": len(spec.stimuli),
        "plannedStimulusNames": [stimulus.name for stimulus in spec.stimuli],
        "environment": item.environments.get("environment", {}),
        "stimuli": [
            {
                "name": stimulus.name,
                "environment": item.stimulus_environments.get(stimulus.name, {}),
                "graders": [{"name": entry.name or entry.type, "type": entry.type} for entry in stimulus.graders],
            }
            for stimulus in spec.stimuli
        ],
    }


def manifest(experiment: Experiment, run_id: str) -> Document:
    """What tells two runs of an experiment apart."""
    config = experiment.config
    return {
        "type": "experiment-manifest",
        "version": 1,
        "experiment": {
            "runId": run_id,
            "name": config.name,
            "experimentHash": config.experiment_hash,
            "vallyVersion": __version__,
            "planDigest": experiment.plan_digest,
            "variantNames": list(config.variant_names),
            "baseline": config.baseline,
        },
    }


def shard_manifest(base: Document, shard: Shard, selected: Sequence[str], completed: Iterable[str]) -> Document:
    """The manifest of a run with what it has to do and what it has done."""
    return {
        **base,
        "type": "experiment-shard-manifest",
        "shard": shard.document(),
        "selectedShardKeys": list(selected),
        "completedShardKeys": list(completed),
    }


def provenance(experiment: Experiment, item: Any, run_id: str) -> Document:
    """Where the records of one eval in one variant come from."""
    return {
        "type": "experiment-run-summary",
        "experiment": experiment.config.name,
        "runId": run_id,
        "variant": item.variant,
        "evalFile": item.eval_file,
        "evalHash": item.eval_hash,
        "configHash": item.config_hash,
        "resolvedDefaults": dict(item.defaults),
        "resolvedEnvironment": dict(item.environments.get("environment", {})),
        "experimentFile": experiment.config.display_path,
        "experimentHash": experiment.config.experiment_hash,
        "vallyVersion": __version__,
        "timestamp": timestamp(),
    }


def summary_document(
    head: Mapping[str, Any],
    summary: RunSummary,
    comparisons: Sequence[Mapping[str, Any]],
    contaminated: Sequence[Mapping[str, Any]] = (),
) -> Document:
    """The verdicts of all variants; `head` is the `experiment` of the manifest."""
    evals = [dump_record(item) for item in summary.evals]
    spoiled = {item["variant"] for item in contaminated}
    names = [name for name in head["variantNames"] if any(item["variant"] == name for item in evals)]
    variants = [
        {
            "name": name,
            "passed": name not in spoiled and all(item["passed"] for item in evals if item["variant"] == name),
            "evals": [item for item in evals if item["variant"] == name],
        }
        for name in names
    ]
    return {
        "type": "experiment-summary",
        "version": 1,
        "runId": head["runId"],
        "name": head["name"],
        "baseline": head["baseline"],
        "passed": summary.passed and not spoiled,
        "partial": summary.partial,
        "stopReason": summary.stop_reason,
        "hadExecutionErrors": summary.had_execution_errors,
        "durationMs": summary.duration_ms,
        "totals": dump_record(summary.totals),
        "variants": variants,
        "comparisons": [
            {
                "variant": item["treatment"],
                "evalFile": item["evalFile"],
                "model": item["model"],
                "summary": item["summary"],
            }
            for item in comparisons
        ],
        "contaminated": [dict(item) for item in contaminated],
    }
