"""`vally oracle` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import CliContext, display_options, plugin_options_for, run_options


@click.command("oracle")
@run_options("eval-spec", "stimulus", "tag", "param")
@click.option("--no-golden-input", is_flag=True, help="Withhold the golden input; every grader must fail then.")
@click.option("--no-golden-patch", "old_negative", is_flag=True, hidden=True)
@run_options(
    "skip-grade",
    "workspace",
    "judge-model",
    "judge-reasoning-effort",
    "judge-cache",
    "judge-cache-dir",
    "workers",
    "run-id",
    "output",
)
@plugin_options_for("grader")
@display_options
@click.pass_obj
def _command(context: CliContext, /, old_negative: bool, **options: Any) -> int:
    """Prove that graders accept what is known to be right, and reject its absence.

    For each stimulus with a golden patch, command or trajectory: prepare its workspace, apply the input, grade. No
    agent runs.
    """
    from vally import print_warning

    if old_negative:
        print_warning("'--no-golden-patch' is deprecated, use '--no-golden-input'")
        options["no_golden_input"] = True
    if options["no_golden_input"] and options["skip_grade"]:
        raise click.UsageError("--no-golden-input needs grades, so it cannot be combined with --skip-grade")
    if not options["specs"]:
        raise click.UsageError("missing option '--eval-spec'\nexample: vally oracle --eval-spec evals/hello/eval.yaml")
    from vally_command_oracle.oracle import Oracle

    return Oracle(context, options).execute()


def command() -> click.Command:
    """The command, for the record."""
    return _command
