"""`vally grade`: its options, and the way from them to a re-grading."""

from __future__ import annotations

from typing import Any

import click

from vally.cli.context import CliContext
from vally.cli.options import display_options, plugin_options_for
from vally.cli.run_options import run_options, with_options

_PLACES = [
    click.option("--workspace", metavar="DIR", help="Workspace for graders of files and commands."),
    click.option("--run-dir", metavar="DIR", help="Directory of the side files that records name."),
    click.option("--diff-file", metavar="FILE", help="Unified diff of a trajectory that recorded none."),
    click.option("--artifact-dir", metavar="DIR", help="Outputs of the run, for a single trajectory."),
]


@click.command("grade")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option(
    "--eval-spec",
    "-e",
    "specs",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Where graders and scoring come from: file, directory or glob.",
)
@click.option(
    "--stimulus",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="What to grade ATIF and session input against; for records a glob of what to grade.",
)
@with_options(_PLACES)
@run_options("tag", "param", "threshold", "judge-model", "judge-reasoning-effort", "judge-cache", "judge-cache-dir")
@run_options("backend", "backend-args")
@click.option("--workers", type=click.IntRange(1, 256), default=5, show_default=True, help="Concurrent gradings.")
@run_options("output", "require-pass", "run-id")
@plugin_options_for("grader", "reporter")
@display_options
@click.pass_obj
def command(context: CliContext, /, inputs: tuple[str, ...], **options: Any) -> int:
    """Grade recorded trajectories again, without running an agent."""
    from vally.cli.grade_run import GradeRun

    return GradeRun(context, inputs, options).execute()
