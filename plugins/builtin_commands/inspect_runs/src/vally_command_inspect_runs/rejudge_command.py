"""`vally rejudge` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, display_options, plugin_options_for, run_options


@click.command("rejudge")
@click.argument("run", metavar="RUN")
@run_options(
    "eval-spec",
    "param",
    "judge-model",
    "judge-reasoning-effort",
    "judge-cache",
    "judge-cache-dir",
    "workers",
    "require-pass",
    "output",
)
@plugin_options_for("grader")
@display_options
@click.pass_obj
def _command(context: CliContext, /, run: str, **options: Any) -> int:
    """Ask the judges of a stored run again that ended with an error; everything else stays as it was recorded.

    RUN is a run directory, a results file, the id of a run, or 'latest'. The former file is kept as
    results.jsonl.prev.
    """
    from vally import reserved_stdout
    from vally_command_inspect_runs.rejudge import Rejudge

    with reserved_stdout(options["output"] != "text"):
        return Rejudge(context, run, options).execute()


def rejudge_command() -> click.Command:
    """The command, for the record."""
    return _command
