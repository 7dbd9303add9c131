"""`vally experiment` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, RunCommand, display_options, plugin_options, reporter_flags, run_options
from vally_command_experiment.shards import ShardType


@click.group("experiment")
def experiment() -> None:
    """Run evals in variants, and merge shards."""


@experiment.command("run", cls=RunCommand)
@click.argument("file", required=False)
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant.")
@click.option("--eval-filter", "eval_filters", multiple=True, metavar="PATH", help="Only these evals of the file.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Concurrent trials.  [default: 5]")
@click.option("--compare", is_flag=True, help="Let a judge compare each variant with the baseline afterwards.")
@click.option("--shard", type=ShardType(), help="Run only this part of the plan, such as 2/5.")
@click.option(
    "--shard-strategy",
    type=click.Choice(["by-stimulus", "by-eval"]),
    default="by-stimulus",
    show_default=True,
    help="What stays together in a shard.",
)
@run_options(
    "stimulus", "tag", "param", "dry-run", "preflight", "max-per-model", "max-retries", "workspace", "backend",
    "backend-args", "shutdown-timeout", "seed", "threshold", "judge-model", "judge-reasoning-effort", "judge-cache",
    "judge-cache-dir", "skip-grade", "require-pass", "fail-fast", "max-cost", "max-tokens-total", "output",
    "output-dir", "run-id", "keep-executor-session-logs", "resume",
)  # fmt: skip
@plugin_options
@display_options
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> int:
    """Run every eval of an experiment in every variant and report the differences."""
    context = ctx.find_object(CliContext)
    assert context is not None
    flags = reporter_flags(context, options)
    from vally_command_experiment.session import ExperimentRun, check_usage

    resumption = None
    if options["resume"] is not None:
        from vally import Resumption, given_options

        if options["file"] is not None:
            raise click.UsageError("--resume continues the experiment of the run, so it takes no FILE")
        resumption = Resumption(context, options["resume"], kind="experiment")
        options, flags = resumption.options(options, given_options(ctx)), resumption.reporter_flags(flags)
    check_usage(options)
    return ExperimentRun(context, options, flags, resumption).execute()


@experiment.command("merge")
@click.argument("directories", nargs=-1, required=True, metavar="SHARD-DIR...")
@click.option("--output-dir", "-o", required=True, metavar="DIR", help="Directory for the whole run; empty or absent.")
@click.option("--require-pass", is_flag=True, help="Exit 1 when an eval verdict fails.")
@click.option("--html", is_flag=True, help="Write report.html too.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Machine output.")
@display_options
@click.pass_obj
def merge(context: CliContext, /, **options: Any) -> int:
    """Assemble the shards of one experiment that ran on several machines."""
    from vally_command_experiment.merging import merge_shards

    return merge_shards(context, options)


def command() -> click.Command:
    """Make the command."""
    return experiment
