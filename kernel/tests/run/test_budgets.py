"""What a run may cost: `--max-cost` and `--max-tokens-total` start no trial once the sums reach them."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from vally import PlannedEval, PlannedStimulus, RunTally, TrialFacts, run_options
from vally.run.budgets import Budgets
from vally.run.stopping import Stopping

STIMULUS = PlannedStimulus(name="s", line=None, grader_count=0, trials=9)
PLANNED = PlannedEval(
    index=0,
    name="e",
    eval_file_path="eval.yaml",
    variant="main",
    model="m",
    executor="x",
    judge_model="j",
    threshold=None,
    stimuli=(STIMULUS,),
)


def facts(index: int, *costs: tuple[str, float], tokens: int = 0, status: str = "success") -> TrialFacts:
    return TrialFacts(eval_index=0, stimulus="s", trial_index=index, status=status, costs=costs, tokens=tokens)


def after(*trials: TrialFacts, **limits: Any) -> tuple[str | None, list[str]]:
    """Why no further trial may start once these have ended, and the warnings."""
    tally, stopping, warnings = RunTally([PLANNED]), Stopping(lambda _: None, 1), list[str]()
    limits = {"max_cost": None, "max_tokens": None, **limits}
    budgets = Budgets(tally, stopping, warn=warnings.append, **limits)
    for trial in trials:
        tally.add(trial)
        budgets.note(trial)
    budgets.check()
    return stopping.stop_reason, warnings


@pytest.mark.parametrize(
    ("limit", "costs", "reason"),
    [
        ((1.0, "usd"), [("usd", 0.5), ("usd", 0.25)], None),
        ((0.75, "usd"), [("usd", 0.5), ("usd", 0.25)], "budget-cost"),
        ((2.0, "aiu"), [("aiu", 1.0), ("nano-aiu", 999_999_999)], None),
        ((2.0, "aiu"), [("aiu", 1.0), ("nano-aiu", 1_000_000_000)], "budget-cost"),
        ((0.5, "usd"), [("usd", 0.25), ("aiu", 9.0), ("usd", 0.0)], None),
    ],
)
def test_costs_of_one_unit_are_summed(
    limit: tuple[float, str], costs: list[tuple[str, float]], reason: str | None
) -> None:
    found, _ = after(*(facts(index, cost) for index, cost in enumerate(costs)), max_cost=limit)
    assert found == reason


@pytest.mark.parametrize(("limit", "reason"), [(100, "budget-tokens"), (101, None), (None, None)])
def test_tokens_are_summed(limit: int | None, reason: str | None) -> None:
    assert after(facts(0, tokens=40), facts(1, tokens=60), max_tokens=limit) == (reason, [])


def test_a_trial_without_a_cost_in_the_unit_is_told_once() -> None:
    trials = [facts(0, ("usd", 1.0)), facts(1, status="skipped"), facts(2), facts(3, ("aiu", 1.0))]
    _, warnings = after(*trials, max_cost=(9.0, "usd"))
    assert warnings == ["--max-cost: trial 3 of 's' reports no cost in usd; such trials count as 0"]


def test_parts_of_a_unit_are_costs_in_it() -> None:
    assert after(facts(0, ("nano-aiu", 5)), max_cost=(9.0, "aiu")) == (None, [])
    assert after(facts(0)) == (None, [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2.50usd", "(2.5, 'usd')"),
        ("40 AIU", "(40.0, 'aiu')"),
        (".5", "(0.5, 'usd')"),
        ("2eur", "'2eur' is not an amount (examples: 2.50usd, 40aiu)"),
        ("-1usd", "'-1usd' is not an amount"),
        ("usd", "'usd' is not an amount"),
        ("0usd", "must be greater than zero"),
    ],
)
def test_amounts_as_given(text: str, shown: str) -> None:
    @click.command()
    @run_options("max-cost")
    def command(max_cost: tuple[float, str]) -> None:
        click.echo(str(max_cost))

    result = CliRunner().invoke(command, [f"--max-cost={text}"])
    assert shown in result.output
    assert result.exit_code == (0 if shown.startswith("(") else 2)
