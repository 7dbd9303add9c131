"""What a command decided about a run, beside its plan."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from vally.cli.display import progress_style, use_color

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.run.reporting import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoices:
    """How a run proceeds and what becomes of it; the names and meanings of fields are those of options.

    Durations are in milliseconds. `max_cost` is (amount, unit). `reporter_flags` are the options that reporters bring.
    """

    workers: int = 5
    max_per_model: int | None = None
    max_retries: int = 0
    fail_fast: bool = False
    max_cost: tuple[float, str] | None = None
    max_tokens_total: int | None = None
    skip_grade: bool = False
    require_pass: bool = False
    keep_executor_session_logs: bool = False
    shutdown_timeout: int = 30_000
    preflight: bool = False
    in_place: bool = False
    workspace: str | None = None
    backend: str | None = None
    backend_args: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    judge_cache: bool | None = None
    judge_cache_dir: str | None = None
    output: Literal["text", "json", "jsonl"] = "text"
    reporter_flags: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any], reporter_flags: Mapping[str, Any] | None = None) -> RunChoices:
        """Take them from the parameters of a command; what it has no option for gets its default."""
        known = {item.name for item in fields(cls)}
        given = {name: value for name, value in options.items() if name in known}
        return cls(**given, reporter_flags=reporter_flags or {})

    @property
    def secrets(self) -> dict[str, str]:
        """Values that records must not show, by name."""
        return {**dict(self.params), **dict(self.backend_args)}

    def reporting(self, context: CliContext) -> RunOptions:
        """What reporters are told of them and of the display settings."""
        from vally.run.reporting import RunOptions

        display, environ = context.display, context.environ
        return RunOptions(
            output=self.output,
            verbose=display.verbose,
            quiet=display.quiet,
            progress=progress_style(display, environ, sys.stderr),
            color_stdout=use_color(display.color, environ, sys.stdout),
            color_stderr=use_color(display.color, environ, sys.stderr),
            skip_grade=self.skip_grade,
            require_pass=self.require_pass,
            flags=self.reporter_flags,
        )
