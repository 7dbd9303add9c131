"""`vally show` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, complete_from_run, display_options


@click.command("show")
@click.argument("run", required=False, metavar="[RUN]")
@click.option(
    "--stimulus", metavar="GLOB", shell_complete=complete_from_run("stimulus"), help="Only trials of these stimuli."
)
@click.option(
    "--trial",
    type=click.IntRange(0),
    shell_complete=complete_from_run("trial_index"),
    metavar="I",
    help="Only this trial; the first is 0.",
)
@click.option(
    "--model", metavar="MODEL", shell_complete=complete_from_run("model"), help="Only trials with this model."
)
@click.option(
    "--variant", metavar="NAME", shell_complete=complete_from_run("variant"), help="Only trials of this variant."
)
@click.option("--failed", is_flag=True, help="Only trials that failed or ended in an error.")
@click.option("--events", is_flag=True, help="Only the timeline of events.")
@click.option("--diff", is_flag=True, help="Only what changed in the workspace.")
@click.option("--full", is_flag=True, help="Shorten nothing.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Format; json prints the records.")
@click.option("--store", metavar="PATH", help="Take the run out of a store.")
@display_options
@click.pass_obj
def _command(context: CliContext, /, run: str | None, **options: Any) -> int:
    """Show a stored run, or what happened in one of its trials.

    RUN is a run directory, a results file, the id of a run, or 'latest', which is the default. A selection that leaves
    one trial shows it in full: prompt, timeline, output, metrics and graders.
    """
    if options["events"] and options["diff"]:
        raise click.UsageError("--events and --diff exclude each other")
    from vally_command_inspect_runs.show import Show

    return Show(context, run, options).execute()


def show_command() -> click.Command:
    """The command, for the record."""
    return _command
