"""The program: a click group that imports a command only when it is used."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from vally._version import __version__
from vally.cli.context import CliContext
from vally.cli.process import discard, interrupted_code

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

KERNEL_COMMANDS: Mapping[str, tuple[str, str]] = {
    "eval": ("vally.cli.eval_command:command", "run stimuli against an agent and grade what it did"),
    "grade": ("vally.cli.grade_command:command", "grade recorded trajectories again"),
    "plugins": ("vally.cli.plugins:command", "list what is installed and what failed to load"),
}
FIXED_HINTS = {
    "run": "vally eval --eval-spec FILE",
    "new": "vally init",
    "check": "vally lint PATH",
    "report": "vally show",
}
STDOUT_CLOSED = 141


class StdoutClosed(Exception):
    """Nobody reads stdout any more."""


class ProgramGroup(click.Group):
    """Commands of the kernel and of `vally.commands` plugins; help shows summaries without importing any."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the words of the program, which may print help."""
        with _pipe_errors_kept():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        with _pipe_errors_kept():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        return sorted({*KERNEL_COMMANDS, "help", *self._plugin_records(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is none of that name."""
        command = self._command(ctx, cmd_name)
        if command is not None and ctx.resilient_parsing:
            from vally.cli.completion import attach

            attach(command)
        return command

    def _command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return HELP_COMMAND
        if cmd_name in KERNEL_COMMANDS:
            from vally.loading import import_string

            command: click.Command = import_string(KERNEL_COMMANDS[cmd_name][0])
            return command
        record = self._plugin_records(ctx).get(cmd_name)
        return None if record is None else _context(ctx).bare_host().create(record)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands with their one-line summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._summaries(ctx).items()))

    def _summaries(self, ctx: click.Context) -> dict[str, str]:
        rows = {name: summary for name, (_, summary) in KERNEL_COMMANDS.items()}
        rows["help"] = "print the help of a command"
        return rows | {name: record.summary for name, record in self._plugin_records(ctx).items()}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Commands that begin so, with their summaries, then options; imports no command."""
        from click.shell_completion import CompletionItem

        rows = [(name, text) for name, text in self._summaries(ctx).items() if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=text) for name, text in sorted(rows)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with what the user may have meant."""
        name, words = args[0], args[1:]
        leaves_out = any(word.startswith("--no-plugin") for word in words)
        if leaves_out:
            from vally.cli.early_words import early_plugin_words

            # Which distributions are left out decides which of two provides the command.
            _context(ctx).plugin_words.update(early_plugin_words(words))
        command = self.get_command(ctx, name)
        if command is None:
            raise click.UsageError(self._unknown(ctx, name), ctx)
        if leaves_out:
            from vally.cli.early_words import words_for

            words = words_for(command, ctx, words)
        return name, command, words

    def _unknown(self, ctx: click.Context, name: str) -> str:
        if name.startswith("-"):
            return f"no such option: {name}"
        if name in FIXED_HINTS:
            return f"unknown command '{name}'\nuse: {FIXED_HINTS[name]}"
        from vally.text.suggest import did_you_mean

        host = _context(ctx).bare_host()
        if (conflict := host.conflict("command", name)) is not None:
            return "\n".join((conflict.message, *conflict.hints))
        hint = did_you_mean(name, self.list_commands(ctx))
        return f"unknown command '{name}'" + (f"\n{hint}" if hint else "")

    def _plugin_records(self, ctx: click.Context) -> Mapping[str, Any]:
        found = ctx.meta.get("vally.commands")
        if found is None:
            host = _context(ctx).bare_host()
            found = {name: item for name, item in host.records("command").items() if name not in KERNEL_COMMANDS}
            ctx.meta["vally.commands"] = found
        return found


def _context(ctx: click.Context) -> CliContext:
    context = ctx.find_object(CliContext)
    assert context is not None
    return context


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(__version__)
        ctx.exit()


@click.command("help", add_help_option=False)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def _help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of the program or of a command."""
    assert ctx.parent is not None
    current = ctx.parent
    for word in words:
        group = current.command
        command = group.get_command(current, word) if isinstance(group, click.Group) else None
        if command is None:
            raise click.UsageError(f"unknown command '{' '.join(words)}'", ctx.parent)
        current = click.Context(command, info_name=word, parent=current)
    click.echo(current.get_help())


HELP_COMMAND = _help


def program() -> click.Group:
    """The command tree; its state lives in the click context only."""
    group = ProgramGroup(
        name="vally",
        help="Evaluate AI agents: run stimuli, grade what the agent did, get a verdict a CI can trust.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        invoke_without_command=True,
        no_args_is_help=False,
        params=[
            click.Option(
                ["--version", "-V"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_print_version,
                help="Print the version and exit.",
            )
        ],
    )

    @click.pass_context
    def without_command(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    group.callback = without_command
    return group


def run(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    host_objects: Sequence[object] = (),
) -> int:
    """Run the program in this process and return its exit code; never raises `SystemExit`.

    `stdout` and `stderr` replace the process's streams while it runs. `host_objects` are records or modules added to
    the plugins.
    """
    directory = cwd or _current_directory(argv)
    if directory is None:
        return 1
    context = CliContext(
        environ=os.environ if environ is None else environ,
        cwd=directory.absolute(),
        host_objects=tuple(host_objects),
    )
    with contextlib.ExitStack() as stack:
        if stdout is not None:
            stack.enter_context(contextlib.redirect_stdout(stdout))
        if stderr is not None:
            stack.enter_context(contextlib.redirect_stderr(stderr))
        if environ is not None:
            from vally.cli.own_process import given_environment

            stack.enter_context(given_environment(environ))
        return _guarded(list(argv), context)


def _current_directory(argv: Sequence[str]) -> Path | None:
    """The current directory; None, with a message, when it was removed and something else than help is wanted."""
    try:
        return Path.cwd()
    except OSError:
        if {"--version", "-V", "--help", "-h"} & set(argv):
            return Path(os.sep)
    from vally.cli.messages import say

    say("error: the current directory does not exist any more")
    say("  change to one that does")
    return None


def _guarded(argv: list[str], context: CliContext) -> int:
    instruction = context.environ.get("_VALLY_COMPLETE")
    if instruction:
        from vally.cli.completion import answer

        return answer(program(), context, instruction)
    try:
        value = program().main(args=argv, prog_name="vally", standalone_mode=False, obj=context)
        if sys.stdout is not None:
            sys.stdout.flush()
        return value if isinstance(value, int) else 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        from vally.cli.messages import print_usage_error

        print_usage_error(error, argv)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return interrupted_code(error)
    except (StdoutClosed, BrokenPipeError):
        discard(sys.stdout)
        return STDOUT_CLOSED
    except SystemExit as exit_:
        return _failure(RuntimeError(f"a plugin called sys.exit({exit_.code!r})"), context)
    except Exception as error:
        return _failure(error, context)
    except BaseExceptionGroup as group:
        return _failure(RuntimeError(str(group)), context)


@contextlib.contextmanager
def _pipe_errors_kept() -> Iterator[None]:
    """Hide a closed stdout from click, which would end the process with exit code 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise StdoutClosed from error


def _failure(error: Exception, context: CliContext) -> int:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    from vally.cli.messages import error_line, print_diagnostics, print_error, say
    from vally.errors import SpecError, UsageError, VallyError

    if isinstance(error, SpecError) and error.diagnostics:
        print_diagnostics(error.diagnostics)
        return 1
    if isinstance(error, VallyError):
        print_error(error)
        return 2 if isinstance(error, UsageError) else 1
    if isinstance(error, OSError) and error.strerror:
        # No bug: a disk that is full, a file that may not be read.
        say(error_line(error.strerror, where=str(error.filename) if error.filename else None))
        return 1
    if context.display.log_level == "debug":
        import traceback

        traceback.print_exc()
    say(f"internal error: {type(error).__name__}: {error}")
    say("  this is a bug; run again with --log-level debug")
    return 1
