"""Colour and progress style, decided once from options, environment and streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Progress = Literal["live", "plain", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """The display options that every command accepts, as given."""

    quiet: bool = False
    verbose: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    progress: Literal["auto", "live", "plain", "none"] = "auto"
    log_level: str | None = None


def use_color(option: str, environ: Mapping[str, str], stream: Any) -> bool:
    """Whether to colour a stream: option, `NO_COLOR`, `FORCE_COLOR`, `TERM`, then whether it is a terminal."""
    if option != "auto":
        return option == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name) not in (None, "", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return environ.get("TERM") != "dumb" and is_terminal(stream)


def progress_style(options: DisplayOptions, environ: Mapping[str, str], stderr: Any) -> Progress:
    """How to show progress on stderr."""
    if options.progress != "auto":
        return options.progress
    if options.quiet:
        return "none"
    in_ci = environ.get("CI", "").lower() not in ("", "0", "false")
    # A display that is redrawn needs escape sequences, and NO_COLOR asks for none of them.
    plain = in_ci or options.verbose or environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    if is_terminal(stderr) and not plain:
        return "live"
    return "plain"


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
