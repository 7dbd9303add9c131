"""Errors, warnings and diagnostics as the program prints them on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from vally.cli.own_process import current_environment
from vally.cli.terminal import inert_line
from vally.text.display import single_line
from vally.text.glyphs import fit_glyphs

if TYPE_CHECKING:
    from vally.errors import VallyError
    from vally.model.evalspec import Diagnostic


def say(line: str) -> None:
    """Print one line on stderr; text that others wrote neither breaks nor steers it."""
    tell([inert_line(single_line(line), current_environment())])


def print_line(line: str, *, to_stderr: bool = False) -> None:
    """Print one line for people: text that others wrote neither breaks nor steers it."""
    if to_stderr:
        say(line)
        return
    click.echo(fit_glyphs(inert_line(single_line(line), current_environment()), sys.stdout))


def tell(lines: Iterable[str]) -> None:
    """Print lines on stderr in one go; when nobody reads stderr any more, that ends nothing."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(fit_glyphs("\n".join(lines), sys.stderr), err=True)


def error_line(what: str, *, where: str | None = None, code: str | None = None, level: str = "error") -> str:
    """`error: <where>: <what> [<code>]`."""
    place = f"{where}: " if where else ""
    return f"{level}: {place}{what}{f' [{code}]' if code else ''}"


def print_error(error: VallyError) -> None:
    """Print an error with its hints."""
    say(error_line(error.message, where=error.where, code=error.code))
    print_hints(error.hints)


def print_usage_error(error: click.ClickException, words: Iterable[str]) -> None:
    """Print what is wrong with the words of a command line; lines after the first one of the error are hints."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        group = error.ctx.command
        names = group.list_commands(error.ctx) if isinstance(group, click.Group) else []
        error = click.UsageError(f"name a subcommand\nsubcommands: {', '.join(names)}", error.ctx)
    message, *hints = _with_whole_words(error.format_message(), words).splitlines() or [""]
    say(error_line(f"{message[:1].lower()}{message[1:]}"))
    print_hints(hints)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say(f"  try '{error.ctx.command_path} --help'")


def _with_whole_words(message: str, words: Iterable[str]) -> str:
    """The message, in which no line ends inside of a word that it quotes."""
    for word in words:
        for quoted in (word, word.partition("=")[2]):
            if len(quoted.splitlines()) > 1:
                message = message.replace(quoted, single_line(quoted))
    return message


def print_hints(hints: Iterable[str]) -> None:
    """Print hints, indented below the message they belong to."""
    for hint in hints:
        say(f"  {hint}")


def print_warning(what: str) -> None:
    """Print one warning."""
    say(error_line(what, level="warning"))


def print_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print findings about files, errors and warnings, each with its hint and related places."""
    for item in diagnostics:
        if item.level == "info":
            continue
        where = ":".join(str(part) for part in (item.file, item.line, item.column) if part is not None) or None
        context = f"{item.context}: " if item.context else ""
        say(error_line(f"{context}{item.message}", where=where, code=item.code, level=item.level))
        print_hints((item.hint or "").splitlines())
        for place in item.related:
            there = ":".join(str(part) for part in (place.file, place.line, place.column) if part is not None)
            say(f"  {there}: {place.message}" if there else f"  {place.message}")
