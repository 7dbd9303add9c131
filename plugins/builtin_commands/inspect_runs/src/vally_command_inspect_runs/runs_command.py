"""`vally runs` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, display_options


@click.command("runs")
@click.argument("directory", required=False, metavar="[DIRECTORY]")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many, the newest.")
@click.option("--eval", "eval_glob", metavar="GLOB", help="Only runs with an eval of such a name.")
@click.option("--failed", is_flag=True, help="Only runs that did not pass.")
@click.option("--store", metavar="PATH", help="List the runs of a store instead of directories.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Format.")
@display_options
@click.pass_obj
def _command(context: CliContext, /, directory: str | None, **options: Any) -> int:
    """List stored runs, the newest first.

    DIRECTORY is searched with everything below it; by default the directories that runs are written to.
    """
    from vally_command_inspect_runs.listing import list_runs

    return list_runs(context, directory, options)


def runs_command() -> click.Command:
    """The command, for the record."""
    return _command
