"""`vally eval`: its options, and the way from them to a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from vally.cli.context import CliContext
from vally.cli.early_words import early_plugin_words
from vally.cli.judge_options import JUDGE_OPTIONS
from vally.cli.options import DURATION, KEY_VALUE, MODELS, TAG, URL, display_options, plugin_options
from vally.records import ReporterOption, ReporterSpec

F = TypeVar("F", bound=Callable[..., Any])

SELECTION = [
    click.option("--eval-spec", "-e", "specs", multiple=True, metavar="PATH", help="Spec file, directory or glob."),
    click.option("--suite", "suites", multiple=True, metavar="NAME", help="Suite of .vally.yaml."),
    click.option("--tag", "tags", type=TAG, multiple=True, metavar="KEY=V1,V2", help="Keep stimuli with these tags."),
    click.option(
        "--stimulus", "--filter", "patterns", multiple=True, metavar="GLOB", help="Keep stimuli by name; ! excludes."
    ),
    click.option("--allow-empty", is_flag=True, help="No stimulus selected is success."),
    click.option("--param", "params", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", help="Placeholder value."),
]
EXECUTION = [
    click.option("--model", "models", type=MODELS, multiple=True, metavar="M1,M2", help="Run once per model."),
    click.option("--executor", metavar="NAME", help="Executor instead of the one of the spec."),
    click.option("--runs", type=click.IntRange(0, 1000), help="Trials per stimulus; 0 validates only."),
    click.option("--timeout", type=DURATION, metavar="DURATION", help="Limit of the agent part of a trial."),
    click.option("--workers", type=click.IntRange(1, 256), default=5, show_default=True, help="Concurrent trials."),
    click.option(
        "--max-retries", type=click.IntRange(0, 100), default=0, help="Further attempts after a retryable error."
    ),
    click.option("--skill-dir", metavar="DIR", help="Skills for stimuli of which no layer declares any."),
    click.option("--work-dir", metavar="DIR", help="Second base of relative MCP server commands."),
    click.option("--workspace", metavar="DIR", help="Keep workspaces below this directory."),
    click.option("--in-place", is_flag=True, help="Run in the --workspace directory itself."),
    click.option("--backend", metavar="NAME", help="Where trials run."),
    click.option("--backend-args", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", help="Settings of the backend."),
    click.option(
        "--shutdown-timeout", type=DURATION, default="30s", metavar="DURATION", help="Grace for cancelled trials."
    ),
    click.option("--seed", type=int, help="Seed of the run."),
    click.option("--dry-run", is_flag=True, help="Print the plan and run nothing."),
    click.option("--preflight", is_flag=True, help="Ask every executor and judge first whether it can start."),
]
GRADING = [
    click.option("--threshold", type=click.FloatRange(0, 1), help="Scoring threshold of every eval."),
    *JUDGE_OPTIONS,
    click.option("--skip-grade", is_flag=True, help="Run the agent only."),
    click.option("--skip-validate", is_flag=True, help="Print semantic diagnostics as warnings instead of stopping."),
]
RESULTS = [
    click.option("--require-pass", is_flag=True, help="Exit 1 when an eval verdict fails."),
    click.option("--fail-fast", is_flag=True, help="Start no trial after the first that fails."),
    click.option("--output", type=click.Choice(["text", "json", "jsonl"]), default="text", help="Machine output."),
    click.option("--output-dir", metavar="DIR", help="Parent of the run directory."),
    click.option("--run-id", metavar="ID", help="Id of the run instead of a generated one."),
    click.option("--keep-executor-session-logs", is_flag=True, help="Keep native session logs per trial."),
]


_FLAG, _VALUE = "reporter_option_", "reporter_value_"


class EvalCommand(click.Command):
    """Adds one flag for each reporter that is active only on request, as its record says."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept the word `agent` of the long form `eval agent`."""
        words = args[1:] if args[:1] == ["agent"] else args
        context = ctx.find_object(CliContext)
        if context is not None:
            context.plugin_words.update(early_plugin_words(words))
        return super().parse_args(ctx, words)

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


def _reporter_flags(context: CliContext, options: dict[str, Any]) -> dict[str, Any]:
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


def _with(options: list[Any]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.command("eval", cls=EvalCommand)
@_with([*SELECTION, *EXECUTION, *GRADING, *RESULTS])
@plugin_options
@display_options
@click.argument("words", nargs=-1, metavar="")
@click.pass_obj
def command(context: CliContext, /, words: tuple[str, ...], **options: Any) -> int:
    """Run stimuli against an agent, grade what it did and write a run directory."""
    if words:
        raise click.UsageError(f"unexpected argument '{words[0]}'\nname spec files with --eval-spec")
    _check_combinations(options)
    from vally.cli.eval_run import EvalRun

    return EvalRun(context, options, _reporter_flags(context, options)).execute()


def _check_combinations(options: dict[str, Any]) -> None:
    import re

    if options["skip_grade"] and options["require_pass"]:
        raise click.UsageError("--require-pass needs grades, so it cannot be combined with --skip-grade")
    if options["in_place"] and not options["workspace"]:
        raise click.UsageError("--in-place needs --workspace")
    run_id = options["run_id"]
    if run_id is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", run_id):
        raise click.BadParameter("must be 1 to 128 of letters, digits, '.', '_' and '-'", param_hint="'--run-id'")
