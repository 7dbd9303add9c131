"""Commands that run trials: the options that reporters bring, beside their own."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from vally.cli.context import CliContext
from vally.cli.options import URL
from vally.records import ReporterOption, ReporterSpec

_FLAG, _VALUE = "reporter_option_", "reporter_value_"


class RunCommand(click.Command):
    """Adds one flag for each reporter that is active only on request, as its record says.

    The command takes the values out of its parameters with `reporter_flags`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the plugins that the words name, because they may bring options."""
        context = ctx.find_object(CliContext)
        if context is not None and any("-plugin" in word for word in args):
            from vally.cli.early_words import early_plugin_words

            context.plugin_words.update(early_plugin_words(args))
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Own options, those of reporters, and help."""
        context = ctx.find_object(CliContext)
        extra: list[click.Parameter] = []
        if context is not None:
            extra = ctx.meta.setdefault("vally.reporter-options", _reporter_options(context))
        own = super().get_params(ctx)
        return [*own[:-1], *extra, *own[-1:]]


def _reporter_options(context: CliContext) -> list[click.Parameter]:
    # What a plugin prints while it is imported must not stand in front of machine output.
    with contextlib.redirect_stdout(sys.stderr):
        records = context.option_records("reporter").values()
    reporters = [item for item in records if isinstance(item, ReporterSpec)]
    made = {item.option: _activating_option(item.option, item) for item in reporters if item.option}
    made |= {option.name: _further_option(option) for item in reporters for option in item.options}
    return [made[name] for name in sorted(made)]


def _words(name: str, prefix: str = _FLAG) -> list[str]:
    return [f"--{name}", f"{prefix}{name.replace('-', '_')}"]


def _activating_option(name: str, record: ReporterSpec) -> click.Option:
    help_text = f"{record.summary}."
    if record.option_file:
        return click.Option(_words(name), is_flag=False, flag_value="", metavar="", help=help_text)
    return click.Option(_words(name), is_flag=True, help=help_text)


def _further_option(option: ReporterOption) -> click.Option:
    help_text = f"{option.help}."
    if option.value == "flag":
        return click.Option(_words(option.name), is_flag=True, help=help_text)
    kind, metavar = (URL, "URL") if option.value == "url" else (click.STRING, "TEXT")
    return click.Option(_words(option.name, _VALUE), type=kind, metavar=metavar, help=help_text)


def reporter_flags(context: CliContext, options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of reporters out of all: true, false, a value, or the absolute path of the file named."""
    from vally.cli.messages import print_warning

    flags: dict[str, Any] = {}
    for key in [key for key in options if key.startswith((_FLAG, _VALUE))]:
        name, value = key.removeprefix(_FLAG).removeprefix(_VALUE).replace("_", "-"), options.pop(key)
        if key.startswith(_VALUE):
            flags[name] = value
        elif isinstance(value, str) and value:
            print_warning(f"'--{name} <file>' is deprecated, use '--{name}'")
            flags[name] = str(context.cwd / value)
        else:
            flags[name] = value == "" or bool(value)
    return flags
