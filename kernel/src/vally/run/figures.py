"""Statistics of a summary in words, the same in every report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.run.eval_table import stimulus_stats
from vally.run.statistics import wilson_interval
from vally.text.numbers import fixed, two_decimals

if TYPE_CHECKING:
    from vally.model.results import EvalSummary

LEVEL = "95% CI"


def eval_figures(item: EvalSummary) -> list[str]:
    """Pass rate and score of an eval with their intervals; what has no interval is left out.

    The interval of the rate takes trials for independent, so it says `trials`; that of the score is over stimuli.
    """
    stats = item.stats or {}
    rate, bounds, score = stats.get("passRate"), stats.get("passRateCi") or {}, stats.get("score") or {}
    facts = []
    trials = sum(verdict_count(stimulus) for stimulus in stimulus_stats(item))
    if rate is not None and bounds.get("low") is not None and trials > 1:
        shown = f"{percent(rate)} ({LEVEL} {percent(bounds['low'])} to {percent(bounds['high'])}"
        facts.append(f"pass rate {shown} over {trials} trials)")
    if score.get("mean") is not None and score.get("low") is not None:
        shown = f"{two_decimals(score['mean'])} ({LEVEL} {two_decimals(score['low'])} to {two_decimals(score['high'])}"
        facts.append(f"score {shown} over {item.stimuli_run} stimuli)")
    return facts


def stimulus_figures(stats: Mapping[str, Any]) -> list[str]:
    """pass@k, pass^k and the pass rate with its interval of a stimulus; nothing below two verdicts."""
    n = verdict_count(stats)
    if n < 2:
        return []
    interval = wilson_interval(int(stats["passed"]), n)
    assert interval is not None
    return [
        f"pass@{n} {two_decimals(stats['passAtK'])}",
        f"pass^{n} {two_decimals(stats['passToTheK'])}",
        f"pass rate {percent(stats['passRate'])} ({LEVEL} {percent(interval.low)} to {percent(interval.high)})",
    ]


def verdict_count(stats: Mapping[str, Any]) -> int:
    """How many trials of a stimulus bear a verdict."""
    if stats.get("passRate") is None:
        return 0
    return int(stats.get("trials") or 0) - int(stats.get("errors") or 0) - int(stats.get("skipped") or 0)


def percent(share: float) -> str:
    """A share (0..1) in percent with one decimal."""
    return f"{fixed(100 * share, 1)}%"
