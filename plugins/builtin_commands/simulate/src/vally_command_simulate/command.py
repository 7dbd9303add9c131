"""`vally simulate record` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, complete_from_run, display_options


@click.group("simulate")
def _group() -> None:
    """Make tool overrides from what tools answered in a recorded run."""


@_group.command("record")
@click.argument("run", metavar="RUN")
@click.option("--stimulus", metavar="GLOB", shell_complete=complete_from_run("stimulus"), help="The stimulus.")
@click.option(
    "--trial",
    type=click.IntRange(0),
    shell_complete=complete_from_run("trial_index"),
    default=0,
    show_default=True,
    metavar="I",
    help="The trial.",
)
@click.option("--model", metavar="MODEL", shell_complete=complete_from_run("model"), help="The model.")
@click.option("--variant", metavar="NAME", shell_complete=complete_from_run("variant"), help="The variant.")
@click.option(
    "--tool", "tools", multiple=True, metavar="REGEX", help="Tools by name, instead of all that MCP servers offer."
)
@click.option(
    "--max-bytes", type=click.IntRange(1), default=65536, show_default=True, help="Cut results that are longer."
)
@click.option(
    "--on-conflict",
    type=click.Choice(["first", "last", "error"]),
    default="first",
    show_default=True,
    help="Which of several results of one call counts.",
)
@click.option("--output-file", metavar="PATH", help="Write there instead of to stdout.")
@click.option("--force", is_flag=True, help="Replace the output file when it exists.")
@click.option("--format", "format_", type=click.Choice(["yaml", "json"]), default="yaml", help="Format.")
@display_options
@click.pass_obj
def _record(context: CliContext, /, run: str, **options: Any) -> int:
    """Print a simulation.tool_overrides block made from the tool calls of one recorded trajectory.

    RUN is a run directory, a results file, the id of a run, 'latest', or the session log of an agent.
    """
    from vally_command_simulate.recording import record

    return record(context, run, options)


def command() -> click.Command:
    """The command, for the record."""
    return _group
