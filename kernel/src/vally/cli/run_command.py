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
_OPTIONS, _REFUSED = "vally.reporter-options", "vally.refused-reporter-options"


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
        own = super().get_params(ctx)
        context = ctx.find_object(CliContext)
        if context is None:
            return own
        if _OPTIONS not in ctx.meta:
            words = {word for parameter in own for word in (*parameter.opts, *parameter.secondary_opts)}
            ctx.meta[_OPTIONS], ctx.meta[_REFUSED] = _reporter_options(context, words)
        return [*own[:-1], *ctx.meta[_OPTIONS], *own[-1:]]


def _reporter_options(context: CliContext, words: set[str]) -> tuple[list[click.Parameter], list[str]]:
    """The options of reporters, and why some cannot be given: `words` belong to the command itself."""
    # What a plugin prints while it is imported must not stand in front of machine output.
    with contextlib.redirect_stdout(sys.stderr):
        records = context.option_records("reporter").values()
    reporters = [item for item in records if isinstance(item, ReporterSpec)]
    made: dict[str, tuple[str, click.Option]] = {}
    refused = []
    for record in reporters:
        for name, option in _options_of(record).items():
            owner, known = made.get(name, (record.name, option))
            if f"--{name}" in words:
                refused.append(f"option '--{name}' of reporter '{record.name}' is one of the command's own")
            elif (known.is_flag, str(known.type)) != (option.is_flag, str(option.type)):
                refused.append(f"option '--{name}' of reporter '{record.name}' is another one of reporter '{owner}'")
            else:
                made[name] = (owner, known)
    return [made[name][1] for name in sorted(made)], refused


def _options_of(record: ReporterSpec) -> dict[str, click.Option]:
    activating = {record.option: _activating_option(record.option, record)} if record.option else {}
    return activating | {option.name: _further_option(option) for option in record.options}


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

    for problem in click.get_current_context().meta.get(_REFUSED, ()):
        print_warning(f"{problem}, and cannot be given")
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
