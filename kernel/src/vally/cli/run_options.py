"""Options of commands that run trials, each written once and taken by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from vally.cli.judge_options import JUDGE_OPTIONS
from vally.cli.options import DURATION, KEY_VALUE, MODELS, SHARE, TAG

F = TypeVar("F", bound=Callable[..., Any])


class CostType(click.ParamType[tuple[float, str]]):
    """An amount of money or units, `2.50usd` or `40aiu`, as (amount, unit); a bare number is in usd."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, str]:
        """Split number and unit."""
        import re

        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z-]*)", value.strip())
        unit = (match[2] or "usd").lower() if match else ""
        if match is None or unit not in ("usd", "aiu"):
            self.fail(f"'{value}' is not an amount (examples: 2.50usd, 40aiu)", param, ctx)
        if float(match[1]) <= 0:
            self.fail("must be greater than zero", param, ctx)
        return float(match[1]), unit


def _run_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    import re

    if value is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", value):
        raise click.BadParameter("must be 1 to 128 of letters, digits, '.', '_' and '-'", ctx=ctx, param=param)
    return value


SELECTION = [
    click.option("--eval-spec", "-e", "specs", multiple=True, metavar="PATH", help="Spec file, directory or glob."),
    click.option("--suite", "suites", multiple=True, metavar="NAME", help="Suite of .vally.yaml."),
    click.option("--tag", "tags", type=TAG, multiple=True, metavar="KEY=V1,V2", help="Keep stimuli with these tags."),
    click.option(
        "--stimulus", "--filter", "patterns", multiple=True, metavar="GLOB", help="Keep stimuli by name; ! excludes."
    ),
    click.option("--eval-plugin", metavar="SPEC", help="Read foreign specs with an eval provider."),
    click.option("--allow-empty", is_flag=True, help="No stimulus selected is success."),
    click.option("--param", "params", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE", help="Placeholder value."),
]
EXECUTION = [
    click.option("--model", "models", type=MODELS, multiple=True, metavar="M1,M2", help="Run once per model."),
    click.option("--executor", metavar="NAME", help="Executor instead of the one of the spec."),
    click.option("--runs", type=click.IntRange(0, 1000), help="Trials per stimulus; 0 validates only."),
    click.option("--timeout", type=DURATION, metavar="DURATION", help="Limit of the agent part of a trial."),
    click.option("--workers", type=click.IntRange(1, 256), default=5, show_default=True, help="Concurrent trials."),
    click.option("--max-per-model", type=click.IntRange(1), metavar="N", help="Concurrent trials with one model."),
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
    click.option("--dry-run", is_flag=True, help="Print the plan, ask the backend, and run nothing."),
    click.option("--preflight", is_flag=True, help="Ask every executor and judge first whether it can start."),
]
GRADING = [
    click.option("--threshold", type=SHARE, help="Scoring threshold of every eval."),
    *JUDGE_OPTIONS,
    click.option("--skip-grade", is_flag=True, help="Run the agent only."),
    click.option("--skip-validate", is_flag=True, help="Print semantic diagnostics as warnings instead of stopping."),
]
RESULTS = [
    click.option("--require-pass", is_flag=True, help="Exit 1 when an eval verdict fails."),
    click.option("--fail-fast", is_flag=True, help="Start no trial after the first that fails."),
    click.option(
        "--max-cost", type=CostType(), metavar="AMOUNT", help="Start no trial after this cost: 2.50usd, 40aiu."
    ),
    click.option("--max-tokens-total", type=click.IntRange(1), metavar="N", help="Start no trial after these tokens."),
    click.option("--output", type=click.Choice(["text", "json", "jsonl"]), default="text", help="Machine output."),
    click.option("--output-dir", metavar="DIR", help="Parent of the run directory."),
    click.option("--run-id", metavar="ID", callback=_run_id, help="Id of the run instead of a generated one."),
    click.option("--resume", metavar="RUN_DIR", help="Continue an interrupted run in its directory."),
    click.option("--keep-executor-session-logs", is_flag=True, help="Keep native session logs per trial."),
]
_ALL = [*SELECTION, *EXECUTION, *GRADING, *RESULTS]


def with_options(options: Iterable[Callable[[F], F]]) -> Callable[[F], F]:
    """A decorator that adds options to a command, in the order given."""
    chosen = list(options)

    def decorate(function: F) -> F:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


def run_options(*names: str) -> Callable[[F], F]:
    """Add options of `vally eval` to a command by their long names without dashes, e.g. `workers`, `max-retries`.

    The command gets them by the parameter names of `vally eval`; those that select (`--eval-spec`, `--suite`, `--tag`,
    `--stimulus`, `--param`, `--model`) are `specs`, `suites`, `tags`, `patterns`, `params` and `models`. Raises
    `KeyError` for a name that is no option.
    """
    known = {_long_name(option): option for option in _ALL}
    return with_options([known[name] for name in names])


def _long_name(option: Callable[..., Any]) -> str:
    # The decorators of click do not tell what they add.
    def probe() -> None:
        return None

    option(probe)
    words: list[str] = probe.__click_params__[0].opts  # type: ignore[attr-defined]  # set by click
    return next(word for word in words if word.startswith("--")).removeprefix("--")
