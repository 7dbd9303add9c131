"""The closing words of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
LEVEL = 0.05


def closing_words(summary: Record, min_effect: float) -> str:
    """What a summary allows to say; `min_effect` is the difference below which nothing counts."""
    if summary["trialCount"] < 2 or summary["ciLow"] is None:
        return "Inconclusive"
    if summary["ciLow"] > min_effect:
        return "Credibly better"
    if summary["ciHigh"] < -min_effect:
        return "Credibly worse"
    return "No credible difference" + (" (underpowered)" if summary["stats"]["signTest"]["underpowered"] else "")


def cautions(summary: Record, min_effect: float) -> list[str]:
    """What a reader should know beside the closing words: trials of one stimulus are not independent evidence."""
    words, stats = closing_words(summary, min_effect), summary["stats"]
    found = []
    if words.startswith("Credibly") and not _holds_across_stimuli(stats, min_effect):
        found.append("this holds for these stimuli only: with stimuli as clusters the interval includes no difference")
    needed, effect = stats["advice"]["stimuli"], stats["advice"]["effect"]
    if words.startswith("No credible") and needed is not None and needed > stats["clusters"]:
        found.append(
            f"to find a difference of {effect:g} in four of five such comparisons takes about {needed:,} stimuli, "
            f"not {stats['clusters']:,}; more trials of the same stimuli help less"
        )
    return found


def _holds_across_stimuli(stats: Record, min_effect: float) -> bool:
    low, high = stats["clusterCiLow"], stats["clusterCiHigh"]
    return low is not None and bool(low > min_effect or high < -min_effect)


def regressed(summary: Record, min_effect: float) -> bool:
    """Whether the treatment is credibly worse."""
    return summary["ciHigh"] is not None and bool(summary["ciHigh"] < -min_effect)


def differences_of_repeats(summary: Record) -> list[str]:
    """Why two sides that repeat one configuration look different; empty when they look alike."""
    stats = summary["stats"]
    found = []
    if _excludes_zero(summary["ciLow"], summary["ciHigh"]):
        found.append("the interval over trials excludes 0")
    if _excludes_zero(stats["clusterCiLow"], stats["clusterCiHigh"]):
        found.append("the interval over stimuli excludes 0")
    p_value = stats["signTest"]["pValue"]
    if p_value is not None and p_value <= LEVEL:
        found.append(f"the sign test has p = {p_value:.3g}")
    return found


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > 0 or high < 0)
