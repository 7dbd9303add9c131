"""`vally eval`: its options, and the way from them to a run."""

from __future__ import annotations

from typing import Any

import click

from vally.cli.context import CliContext
from vally.cli.options import display_options, plugin_options
from vally.cli.run_command import RunCommand, reporter_flags
from vally.cli.run_options import EXECUTION, GRADING, RESULTS, SELECTION, with_options


class EvalCommand(RunCommand):
    """`vally eval`, which is also spelled `vally eval agent`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept the word `agent` of the long form."""
        return super().parse_args(ctx, args[1:] if args[:1] == ["agent"] else args)


@click.command("eval", cls=EvalCommand)
@with_options([*SELECTION, *EXECUTION, *GRADING, *RESULTS])
@plugin_options
@display_options
@click.argument("words", nargs=-1, metavar="")
@click.pass_context
def command(ctx: click.Context, /, words: tuple[str, ...], **options: Any) -> int:
    """Run stimuli against an agent, grade what it did and write a run directory."""
    context = ctx.find_object(CliContext)
    assert context is not None
    if words:
        raise click.UsageError(f"unexpected argument '{words[0]}'\nname spec files with --eval-spec")
    flags = reporter_flags(context, options)
    resumption = None
    if options["resume"] is not None:
        from vally.cli.resumption import Resumption, given_options

        resumption = Resumption(context, options["resume"])
        options, flags = resumption.options(options, given_options(ctx)), resumption.reporter_flags(flags)
    _check_combinations(options)
    from vally.cli.eval_run import EvalRun

    return EvalRun(context, options, flags, resumption).execute()


def _check_combinations(options: dict[str, Any]) -> None:
    if options["skip_grade"] and options["require_pass"]:
        raise click.UsageError("--require-pass needs grades, so it cannot be combined with --skip-grade")
    if options["eval_plugin"] and (not options["specs"] or options["suites"]):
        raise click.UsageError("--eval-plugin needs --eval-spec, and cannot be combined with --suite")
    if options["in_place"] and not options["workspace"]:
        raise click.UsageError("--in-place needs --workspace")
