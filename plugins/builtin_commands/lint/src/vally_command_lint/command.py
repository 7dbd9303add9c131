"""`vally lint` as its users type it."""

from __future__ import annotations

from typing import Any, get_args

import click

from vally import KEY_VALUE, CliContext, display_options, plugin_options_for
from vally_command_lint.severities import Severity


class SeverityType(click.ParamType[tuple[str, Severity]]):
    """`check=level` as a pair."""

    name = "check=level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Severity]:
        """Accept every check and code."""
        from vally import did_you_mean
        from vally_command_lint.codes import known_names

        if isinstance(value, tuple):
            return value
        name, _, level = value.partition("=")
        if level not in get_args(Severity):
            self.fail(f"'{value}' is not of the form check=off|info|warning|error", param, ctx)
        if name not in known_names():
            hint = did_you_mean(name, known_names())
            self.fail(f"no check or code named '{name}'" + (f"\n{hint}" if hint else ""), param, ctx)
        return name, level


_OPTIONS = [
    click.argument("paths", nargs=-1, metavar="[PATH]..."),
    click.option(
        "--eval-spec", "-e", "specs", multiple=True, metavar="PATH", help="Eval spec, directory or glob to check."
    ),
    click.option("--eval", "old_specs", multiple=True, hidden=True),
    click.option("--known-domains", metavar="FILE", help="Report addresses of other domains than those of a file."),
    click.option("--allowed-external-deps", metavar="FILE", help="Report dependencies that a file does not allow."),
    click.option("--eval-plugin", metavar="SPEC", help="Read foreign specs with an eval provider."),
    click.option(
        "--param", "params", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", help="Value of a placeholder."
    ),
    click.option("--strict", is_flag=True, help="Warnings count as errors."),
    click.option(
        "--severity",
        "severities",
        type=SeverityType(),
        multiple=True,
        metavar="CHECK=LEVEL",
        help="off, info, warning or error for a check or code.",
    ),
    click.option("--all", "whole_project", is_flag=True, help="Check the skills, evals and files of the project."),
    click.option("--allow-empty", is_flag=True, help="Nothing to check is success."),
    click.option(
        "--output", type=click.Choice(["text", "json", "sarif"]), default="text", help="Format of the report."
    ),
    click.option("--output-file", metavar="PATH", help="Write the json or sarif report to a file."),
]


def command() -> click.Command:
    """The command."""

    @plugin_options_for("grader", "executor")
    @display_options
    @click.pass_context
    def run(ctx: click.Context, /, **options: Any) -> None:
        """Check skills and evals without running anything.

        PATH is a skill, a SKILL.md, or a directory to search for skills; by default the current one.
        """
        from vally_command_lint.session import LintSession

        context = ctx.find_object(CliContext)
        assert context is not None
        ctx.exit(LintSession(context, options).execute())

    function: Any = run
    for option in reversed(_OPTIONS):
        function = option(function)
    made: click.Command = click.command("lint")(function)
    return made
