"""`--compare`: the command that compares, whichever plugin provides it, over the run that just ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vally import ReadProblem, VallyError, print_warning, read_lines

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, RunSession
    from vally_command_experiment.planning import Experiment

COMMAND = "compare"


def check_comparing(experiment: Experiment, host: PluginHost) -> None:
    """Raise `VallyError` before anything runs when nothing could be compared."""
    if experiment.config.baseline is None:
        raise VallyError(
            "--compare needs a baseline",
            code="baseline-required",
            where=experiment.config.display_path,
            hints=["add `baseline: <variant>` to the experiment"],
        )
    if COMMAND not in host.records("command"):
        raise VallyError("the command 'compare' is not installed", where="--compare")


def compare(
    context: CliContext, session: RunSession, path: Path, options: Mapping[str, Any], *, step_summary: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Run the command over a run directory; returns its exit code and the records it wrote to `path`.

    A comparison that cannot be made is an error of its own and leaves the run as it is. `step_summary` is whether it
    may add to the summary of a step.
    """
    host = context.bare_host()
    command = host.create(host.require("command", COMMAND))
    display, words, environ = context.display, dict(context.plugin_words), context.environ
    if not step_summary:
        context.environ = {name: value for name, value in environ.items() if name != "GITHUB_STEP_SUMMARY"}
    try:
        result = command.main(
            args=_words(context, session.output.path, path, options), standalone_mode=False, obj=context
        )
        code = result if isinstance(result, int) else 0
    except (click.ClickException, VallyError) as error:
        print_warning(f"not compared: {error.message}")
        code = 1
    finally:
        context.display, context.plugin_words, context.environ = display, words, environ
    return code, _records(path)


def _words(context: CliContext, run_dir: Path, path: Path, options: Mapping[str, Any]) -> list[str]:
    words = [str(run_dir), "--output", str(path)]
    for name in ("judge_model", "judge_reasoning_effort", "judge_cache_dir"):
        if options[name]:
            words += [f"--{name.replace('_', '-')}", options[name]]
    if options["judge_cache"] is not None:
        words.append("--judge-cache" if options["judge_cache"] else "--no-judge-cache")
    for specifier in context.plugin_words.get("grader_plugin") or ():
        words += ["--grader-plugin", specifier]
    display = context.display
    words += [word for word, given in (("--quiet", display.quiet), ("--verbose", display.verbose)) if given]
    return [*words, "--color", display.color, *_config(context)]


def _config(context: CliContext) -> Sequence[str]:
    if context.no_config:
        return ["--no-config"]
    return ["--config", context.config] if context.config else []


def _records(path: Path) -> list[dict[str, Any]]:
    problems: list[ReadProblem] = []
    try:
        with path.open("rb") as file:
            return [line.record for line in read_lines(file, problems)]
    except OSError:
        return []
