"""Options and value types that several commands share."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import click

from vally.cli.context import CliContext
from vally.cli.display import DisplayOptions

F = TypeVar("F", bound=Callable[..., Any])


class DurationType(click.ParamType[int]):
    """A duration with a unit, as milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the text; a bare number is refused."""
        from vally.text.durations import InvalidDuration, parse_duration

        if isinstance(value, int):
            return value
        try:
            milliseconds = parse_duration(value)
        except InvalidDuration:
            self.fail(f"'{value}' is not a duration (examples: 30s, 5m, 2m40s)", param, ctx)
        if milliseconds <= 0:
            self.fail("must be greater than zero", param, ctx)
        return milliseconds


class KeyValueType(click.ParamType[tuple[str, str]]):
    """`key=value` as a pair; the value may be empty."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first `=`."""
        import re

        if isinstance(value, tuple):
            return value
        key, separator, text = value.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", key):
            self.fail(f"'{value}' is not of the form key=value", param, ctx)
        return key, text


class ShareType(click.FloatRange):
    """A number from 0 to 1; what is no number (`nan`) lies in no range."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the text."""
        number = float(super().convert(value, param, ctx))
        if number != number:
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


class TagType(click.ParamType[tuple[str, tuple[str, ...]]]):
    """`key=v1,v2` as a key and its values."""

    name = "key=v1,v2"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[str, ...]]:
        """Split at the first `=` and at commas; blanks around values do not count."""
        if isinstance(value, tuple):
            return value
        key, separator, text = value.partition("=")
        values = tuple(item.strip() for item in text.split(","))
        if not separator or not key.strip() or not all(values):
            self.fail(f"'{value}' is not of the form key=v1,v2", param, ctx)
        return key.strip(), values


class ModelsType(click.ParamType[tuple[str, ...]]):
    """A comma separated list of models, duplicates dropped."""

    name = "m1,m2"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Split at commas."""
        if isinstance(value, tuple):
            return value
        models = tuple(dict.fromkeys(item.strip() for item in value.split(",") if item.strip()))
        if not models:
            self.fail("names no model", param, ctx)
        return models


class UrlType(click.ParamType[str]):
    """An http or https URL; credentials belong into the environment, where no list of processes shows them."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check scheme, host and port; no message repeats credentials."""
        from urllib.parse import urlsplit

        text = str(value)
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            known, parts = False, urlsplit("")
        if "@" in parts.netloc:
            self.fail("must not contain credentials", param, ctx)
        if not known or any(character.isspace() for character in text):
            shown = "" if "@" in text else f"'{text}' "
            self.fail(f"{shown}is not an http or https URL (example: http://localhost:4318)", param, ctx)
        return text


DURATION = DurationType()
KEY_VALUE = KeyValueType()
SHARE = ShareType()
TAG = TagType()
MODELS = ModelsType()
URL = UrlType()


def display_options(function: F) -> F:
    """Add the display options; the command finds them in `CliContext.display`."""

    @functools.wraps(function)
    def wrapper(
        *args: Any,
        quiet: bool,
        verbose: bool,
        color: Any,
        progress: Any,
        log_level: str | None,
        config: str | None,
        no_config: bool,
        **kwargs: Any,
    ) -> Any:
        context = click.get_current_context().find_object(CliContext)
        assert context is not None
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose exclude each other")
        context.display = DisplayOptions(
            quiet=quiet, verbose=verbose, color=color, progress=progress, log_level=log_level
        )
        if config is not None and no_config:
            raise click.UsageError("--config and --no-config exclude each other")
        context.config, context.no_config = config, no_config
        configure_logging(context)
        return function(*args, **kwargs)

    options = [
        click.option("--quiet", "-q", is_flag=True, help="No progress, no cards; only errors and verdict lines."),
        click.option("--verbose", "-v", is_flag=True, help="Details."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour."),
        click.option(
            "--progress", type=click.Choice(["auto", "live", "plain", "none"]), default="auto", help="Progress style."
        ),
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            help="Diagnostic log on stderr; debug also prints tracebacks.",
        ),
        click.option("--config", metavar="PATH", help="Project file to use instead of searching for .vally.yaml."),
        click.option("--no-config", is_flag=True, help="Ignore any project file."),
    ]
    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]  # click keeps the callable


def configure_logging(context: CliContext) -> None:
    """Send the diagnostic log to stderr at the level of option or environment; a bad variable means `warning`."""
    import logging

    name = context.display.log_level or context.environ.get("VALLY_LOG_LEVEL") or context.environ.get("LOG_LEVEL")
    level = {"debug": 10, "info": 20, "warning": 30, "error": 40}.get((name or "warning").lower(), 30)
    logger = logging.getLogger("vally")
    logger.setLevel(level)
    logger.propagate = False

    class FollowingStderr(logging.StreamHandler[TextIO]):
        # Looked up for each line: a live display stands in for stderr while it is on.
        stream = property(lambda _: sys.stderr, lambda *_: None)

    handler = FollowingStderr()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.handlers[:] = [handler]


def plugin_options(function: F) -> F:
    """Add the plugin options; the command finds them in `CliContext.plugin_words`."""
    return plugin_options_for("grader", "executor", "reporter")(function)


def plugin_options_for(*kinds: str) -> Callable[[F], F]:
    """Like `plugin_options` with `--<kind>-plugin` for the given kinds only."""
    chosen = [
        click.option(f"--{kind}-plugin", multiple=True, metavar="SPEC", help=f"Load {kind}s from a plugin.")
        for kind in kinds
    ]
    common = [
        click.option("--no-project-plugins", is_flag=True, help="Ignore plugins registered in .vally.yaml."),
        click.option("--no-plugins", is_flag=True, help="Ignore installed third-party plugins."),
        click.option("--no-plugin", multiple=True, metavar="DIST", help="Leave one installed distribution out."),
    ]
    names = (*(f"{kind}_plugin" for kind in kinds), "no_project_plugins", "no_plugins", "no_plugin")

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            context = click.get_current_context().find_object(CliContext)
            assert context is not None
            context.plugin_words.update({name: kwargs.pop(name) for name in names})
            return function(*args, **kwargs)

        for option in reversed([*chosen, *common]):
            wrapper = option(wrapper)
        return wrapper  # type: ignore[return-value]  # click keeps the callable

    return decorate
