"""How the scores of several judges become one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from vally import mean, reaches

Aggregation = Literal["mean", "median", "majority", "min", "unanimous"]


def aggregate(how: Aggregation, scores: Sequence[float], threshold: float) -> tuple[float, bool]:
    """The aggregate of at least one score, and whether it passes: it must reach the threshold.

    A majority is the share of scores that reach the threshold, and passes beyond one half.
    """
    if how == "majority":
        share = sum(reaches(score, threshold) for score in scores) / len(scores)
        return share, share > 0.5
    value = _combined(how, scores)
    return value, reaches(value, threshold)


def _combined(how: Aggregation, scores: Sequence[float]) -> float:
    if how == "mean":
        return mean(scores)
    return statistics.median(scores) if how == "median" else min(scores)
