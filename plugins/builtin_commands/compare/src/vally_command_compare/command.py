"""`vally compare` as its users type it."""

from __future__ import annotations

from typing import Any

import click

from vally import KEY_VALUE, SHARE, CliContext, display_options, judge_options, plugin_options_for


@click.command("compare")
@click.argument("directory", required=False, metavar="[EXPERIMENT-DIR]")
@click.option("--baseline", metavar="PATH", help="Run directory, variant directory or file of records to compare with.")
@click.option("--treatment", metavar="PATH", help="The one to compare.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant of the experiment.")
@click.option(
    "--eval-spec",
    "-e",
    "specs",
    multiple=True,
    metavar="PATH",
    help="Take criteria, and a judge where none is recorded, from this spec.",
)
@click.option("--param", "params", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", help="Value of a placeholder.")
@click.option("--grader", default="prompt", show_default=True, metavar="NAME", help="Grader that compares.")
@judge_options
@click.option(
    "--workers", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="Comparisons at a time."
)
@click.option("--output", metavar="FILE", help="Write the records as JSON lines; - is stdout.")
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 when the treatment is credibly worse.")
@click.option(
    "--min-effect",
    type=SHARE,
    default=0.0,
    metavar="0..1",
    help="Difference below which nothing counts.  [default: 0]",
)
@click.option("--aa", "repeats", is_flag=True, help="The sides repeat one configuration: exit 1 when they differ.")
@plugin_options_for("grader")
@display_options
@click.pass_obj
def compare(context: CliContext, /, **options: Any) -> int:
    """Compare two runs, or the variants of an experiment with its baseline, judged head to head.

    Trials pair by stimulus and trial index; a judge sees each pair in both orders.
    """
    _check(options)
    from vally_command_compare.session import run

    return run(context, options)


def _check(options: dict[str, Any]) -> None:
    sides = [f"--{name}" for name in ("baseline", "treatment") if options[name] is not None]
    if options["directory"] is not None and sides:
        raise click.UsageError(f"{sides[0]} and an experiment directory exclude each other")
    if options["directory"] is None and len(sides) != 2:
        missing = "--treatment" if sides == ["--baseline"] else "--baseline"
        what = f"{missing} is missing" if sides else "name an experiment directory, or --baseline and --treatment"
        raise click.UsageError(what)
    if options["variants"] and options["directory"] is None:
        raise click.UsageError("--variant needs an experiment directory")


def command() -> click.Command:
    """Make the command."""
    return compare
