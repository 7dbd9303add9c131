"""The plan of `vally eval` from its options, and how `--dry-run` prints it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.cli.directories import directory, workspace_directory
from vally.cli.judge_options import judge_effort
from vally.cli.messages import print_line

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.model.evalspec import EvalSpec, Project
    from vally.run.plan import Plan


def build_plan(
    context: CliContext,
    options: Mapping[str, Any],
    specs: Sequence[EvalSpec],
    project: Project,
    skill_dirs: tuple[Path, ...] | None,
) -> Plan:
    """Plan the selected stimuli; raises `VallyError` for an option that cannot be used."""
    from vally.run.plan import PlanOptions, make_plan

    work_dir = directory(context.cwd, options["work_dir"], "--work-dir")
    workspace = workspace_directory(context.cwd, options["workspace"])
    if options["in_place"]:
        directory(context.cwd, options["workspace"], "--workspace")
    plan_options = PlanOptions(
        run_id=options["run_id"] or str(uuid.uuid4()),
        project_root=project.root,
        work_dir=work_dir or context.cwd,
        direct_dir=work_dir,
        models=tuple(dict.fromkeys(model for models in options["models"] for model in models)),
        executor=options["executor"],
        runs=options["runs"],
        timeout_ms=options["timeout"],
        threshold=options["threshold"],
        judge_model=options["judge_model"],
        judge_effort=judge_effort(context, options),
        skill_dirs=skill_dirs,
        workspace=workspace,
        in_place=options["in_place"],
        seed=options["seed"],
    )
    return make_plan(specs, plan_options)


def option_warnings(plan: Plan, options: Mapping[str, Any]) -> list[str]:
    """What options do not do for this plan, a line each."""
    warnings = []
    if options["in_place"] and plan.total > 1:
        warnings.append(
            f"--in-place: {plan.total} trials follow each other in one directory, each in the state that the one "
            "before it left"
        )
    repeated = sorted({item.planned.name for item in plan.evals if item.trials >= 2})
    if options["max_retries"] and repeated:
        warnings.append(f"--max-retries does not apply to evals with 2 or more runs: {', '.join(repeated)}")
    return warnings


def print_plan(plan: Plan, output: str) -> None:
    """Print what would run, for people or as one JSON object."""
    if output != "text":
        from vally.cli.eval_json import print_object

        print_object(_plan_record(plan))
        return
    count = len({evaluation.planned.eval_file_path for evaluation in plan.evals})
    print_line(f"Plan: {_count(count, 'eval')}, {_count(plan.total, 'item')}")
    for evaluation in plan.evals:
        planned = evaluation.planned
        threshold = "none" if planned.threshold is None else f"{planned.threshold:g}"
        print_line(f"── {planned.name} ({planned.eval_file_path}) ──")
        print_line(
            f"  Model:      {planned.model}     Executor: {planned.executor}     "
            f"Trials: {evaluation.trials}     Threshold: {threshold}"
        )
        if planned.skills:
            print_line(f"  Skills:     {', '.join(planned.skills)}")
        stimuli = ", ".join(f"{item.name} ({_count(item.grader_count, 'grader')})" for item in planned.stimuli)
        print_line(f"  Stimuli:    {stimuli}")
    for name in plan.skipped:
        print_line(f"{name}: skipped (runs: 0)")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _plan_record(plan: Plan) -> dict[str, Any]:
    return {
        "type": "eval-plan",
        "version": 1,
        "evals": [
            {
                "name": evaluation.planned.name,
                "evalFilePath": evaluation.planned.eval_file_path,
                "variant": evaluation.planned.variant,
                "model": evaluation.planned.model,
                "executor": evaluation.planned.executor,
                "trials": evaluation.trials,
                "threshold": evaluation.planned.threshold,
                "skills": list(evaluation.planned.skills),
                "stimuli": [{"name": item.name, "graders": item.grader_count} for item in evaluation.planned.stimuli],
            }
            for evaluation in plan.evals
        ],
        "items": [item.item_id for item in plan.items()],
    }
