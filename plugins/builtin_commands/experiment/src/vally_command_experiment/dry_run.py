"""What `--dry-run` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from vally import name_line, reporting, write_machine_output

if TYPE_CHECKING:
    from vally import Plan
    from vally_command_experiment.planning import Experiment


def print_plans(experiment: Experiment, plan: Plan, output: str) -> None:
    """Print one plan per variant, eval and model, for people or as one JSON object."""
    plans = list(_plans(plan))
    config = experiment.config
    with reporting():
        if output != "text":
            write_machine_output(
                json.dumps(
                    {
                        "type": "experiment-plan",
                        "version": 1,
                        "name": config.name,
                        "baseline": config.baseline,
                        "planDigest": experiment.plan_digest,
                        "plans": plans,
                        "items": [item.item_id for item in plan.items()],
                    },
                    ensure_ascii=False,
                )
                + "\n"
            )
            return
        click.echo("\n".join(_lines(config.name, config.baseline, plans)))


def _plans(plan: Plan) -> Any:
    for evaluation in plan.evals:
        block = evaluation.template["experiment"]
        planned = evaluation.planned
        yield {
            "variant": planned.variant,
            "evalName": planned.name,
            "evalFile": planned.eval_file_path,
            "model": planned.model,
            "trials": evaluation.trials,
            "stimuli": [item.name for item in planned.stimuli],
            "configHash": block["configHash"],
            "evalHash": block["evalHash"],
        }


def _lines(name: str, baseline: str | None, plans: list[dict[str, Any]]) -> Any:
    yield f"Experiment: {name_line(name)}"
    if baseline is not None:
        yield f"Baseline:   {name_line(baseline)}"
    yield f"Plans:      {len(plans)}"
    for item in plans:
        yield ""
        yield f"── {name_line(item['variant'])}{' (baseline)' if item['variant'] == baseline else ''} ──"
        yield f"  Eval:        {name_line(item['evalName'])}"
        yield f"  File:        {name_line(item['evalFile'])}"
        yield f"  Model:       {name_line(item['model'])}"
        yield f"  Config hash: {item['configHash']}"
        yield f"  Eval hash:   {item['evalHash']}"
