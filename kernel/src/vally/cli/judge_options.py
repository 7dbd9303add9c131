"""Options of every command that asks judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vally.errors import UsageError

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.run.judge_cache import JudgeCache
    from vally.run.redaction import Redactor

F = TypeVar("F", bound=Callable[..., Any])

EFFORT_VARIABLE = "EVAL_JUDGE_REASONING_EFFORT"
JUDGE_OPTIONS = [
    click.option("--judge-model", metavar="MODEL", help="Judge of graders without a model of their own."),
    click.option("--judge-reasoning-effort", metavar="LEVEL", help="Reasoning effort of judges."),
    click.option("--judge-cache/--no-judge-cache", default=None, help="Keep valid answers of judges, and use them."),
    click.option("--judge-cache-dir", metavar="DIR", help="Keep them there; implies --judge-cache."),
]


def judge_options(function: F) -> F:
    """Add the options about judges to a command."""
    for option in reversed(JUDGE_OPTIONS):
        function = option(function)
    return function


def judge_effort(context: CliContext, options: Mapping[str, Any]) -> str | None:
    """The reasoning effort of judges that the command line or the environment names; None for that of the spec."""
    return options["judge_reasoning_effort"] or context.environ.get(EFFORT_VARIABLE) or None


def judge_cache(
    context: CliContext, options: Mapping[str, Any], output_dir: Path | None, redactor: Redactor
) -> JudgeCache | None:
    """The cache that the options ask for; raises `UsageError` for one in the directory of runs, if that is given."""
    named, wanted = options["judge_cache_dir"], options["judge_cache"]
    if named and wanted is False:
        raise UsageError("--judge-cache-dir and --no-judge-cache exclude each other")
    if not named and not wanted:
        return None
    from vally.run.judge_cache import JudgeCache

    directory = context.cwd / named if named else context.cache_dir / "judge"
    if output_dir is not None and directory.resolve().is_relative_to(output_dir.resolve()):
        raise UsageError(
            f"'{directory}' lies inside the output directory '{output_dir}'",
            where="--judge-cache-dir",
            hints=["the output directory holds run directories only; choose another one"],
        )
    return JudgeCache(directory, redact=redactor.value)
