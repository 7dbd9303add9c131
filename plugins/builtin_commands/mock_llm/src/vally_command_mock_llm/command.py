"""The command: a server that runs until a signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from vally import KEY_VALUE, CliContext, VallyError, display_options, is_loopback, print_warning
from vally.testing import MockLlm

POLL_S = 0.5
"""Waiting without an end cannot be interrupted by a signal everywhere."""


def command() -> click.Command:
    """Make the command."""
    return mock_llm


@click.command("mock-llm")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 takes a free one.  [default: 0]")
@click.option("--log", metavar="FILE", help="Append every request to this file, one JSON line each.")
@click.option(
    "--set", "values", type=KEY_VALUE, multiple=True, metavar="NAME=VALUE", help="Value of ${NAME} in scripts."
)
@display_options
@click.pass_obj
def mock_llm(context: CliContext, /, host: str, port: int, log: str | None, values: tuple[Any, ...]) -> int:
    """Answer like a model server, as the prompts say.

    Lines of a prompt that start with ! are its script: !tool NAME {json}, !say TEXT, !fail STATUS and more. The base
    URL is printed; chat completions, responses, messages and Gemini are served below it until a signal ends it.
    """
    if not is_loopback(host):
        print_warning(f"--host {host}: anybody who reaches this address can use the server")
    with ExitStack() as stack:
        server = _started(stack, MockLlm(host=host, port=port, log=_log_path(context, log), values=dict(values)))
        ended = stack.enter_context(_signalled())
        click.echo(server.url)
        while not ended.wait(POLL_S):
            pass
    return 0


def _started(stack: ExitStack, server: MockLlm) -> MockLlm:
    try:
        return stack.enter_context(server)
    except OSError as error:
        raise VallyError(f"cannot listen there: {error.strerror or error}", where="--host, --port") from error


def _log_path(context: CliContext, log: str | None) -> Path | None:
    if log is None:
        return None
    path = context.cwd / log
    try:
        path.touch()
    except OSError as error:
        raise VallyError(f"cannot write {log}: {error.strerror or error}", where="--log") from error
    return path


@contextmanager
def _signalled() -> Iterator[threading.Event]:
    """An event that is set by the signals which end programs."""
    ended = threading.Event()
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
