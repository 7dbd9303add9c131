"""Intervals and tests behind the numbers of summaries and comparisons; no numerical package is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vally.run.scoring import mean

Z_975 = 1.959963984540054
LEVEL_QUANTILE = 0.975
_EXACT_LIMIT = 1000
_MIN_VOTES = 6


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of an interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over clusters with its standard error and 95 % interval, None where undefined."""

    mean: float | None
    std_error: float | None = None
    low: float | None = None
    high: float | None = None
    clusters: int = 0

    def clipped(self) -> Estimate:
        """The same with the interval clipped to 0..1, as scores and rates need it."""
        return Estimate(
            mean=self.mean,
            std_error=self.std_error,
            low=None if self.low is None else min(1.0, max(0.0, self.low)),
            high=None if self.high is None else min(1.0, max(0.0, self.high)),
            clusters=self.clusters,
        )


def wilson_interval(c: int, n: int) -> Interval | None:
    """Wilson interval (95 %) of the rate of c passes in n trials; None for n = 0."""
    if n == 0:
        return None
    p, z2 = c / n, Z_975**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_975 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the bound is exactly 0 or 1; rounding would leave a trace.
    low = 0.0 if c == 0 else max(0.0, centre - half)
    high = 1.0 if c == n else min(1.0, centre + half)
    return Interval(low, high)


def clustered_mean(cluster_means: Sequence[float]) -> Estimate:
    """Mean of stimulus means with its standard error across stimuli; the interval is not clipped."""
    count = len(cluster_means)
    if count == 0:
        return Estimate(mean=None)
    centre = mean(cluster_means)
    if count < 2:
        return Estimate(mean=centre, clusters=count)
    variance = math.fsum((value - centre) ** 2 for value in cluster_means) / (count * (count - 1))
    return _estimate(centre, math.sqrt(variance), count)


def pooled_mean(clusters: Sequence[Sequence[float]]) -> Estimate:
    """Mean over all trials with a standard error that treats stimuli as clusters; the interval is not clipped."""
    groups = [group for group in clusters if group]
    values = [value for group in groups for value in group]
    if not values:
        return Estimate(mean=None)
    centre, count = mean(values), len(groups)
    if count < 2:
        return Estimate(mean=centre, clusters=count)
    squares = math.fsum(math.fsum(value - centre for value in group) ** 2 for group in groups)
    return _estimate(centre, math.sqrt(count / (count - 1) * squares) / len(values), count)


def _estimate(centre: float, std_error: float, clusters: int) -> Estimate:
    half = t_quantile(LEVEL_QUANTILE, clusters - 1) * std_error
    return Estimate(mean=centre, std_error=std_error, low=centre - half, high=centre + half, clusters=clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """Mean, sample standard deviation and 95 % interval; the last two are None below two values."""

    mean: float | None
    std_dev: float | None
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Mean of independent values with its t interval, not clipped."""
    count = len(values)
    if count == 0:
        return MeanInterval(mean=None, std_dev=None, low=None, high=None)
    centre = mean(values)
    if count == 1:
        return MeanInterval(mean=centre, std_dev=None, low=None, high=None)
    deviation = math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (count - 1))
    half = t_quantile(LEVEL_QUANTILE, count - 1) * deviation / math.sqrt(count)
    return MeanInterval(mean=centre, std_dev=deviation, low=centre - half, high=centre + half)


def paired_interval(pairs: Mapping[str, Sequence[tuple[float, float]]]) -> Estimate:
    """Difference treatment - baseline over (baseline, treatment) pairs by stimulus, stimuli as clusters."""
    means = [mean([treatment - baseline for baseline, treatment in group]) for group in pairs.values() if group]
    return clustered_mean(means)


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemarTest:
    """p-value of a two-sided test, None without observations; `exact` says whether it is binomial."""

    p_value: float | None
    exact: bool


def mcnemar(b: int, c: int) -> McNemarTest:
    """McNemar's test: b pairs that only the baseline passed, c pairs that only the treatment passed."""
    total = b + c
    if total == 0:
        return McNemarTest(p_value=None, exact=True)
    if total > _EXACT_LIMIT:
        statistic = max(0, abs(b - c) - 1) ** 2 / total
        return McNemarTest(p_value=math.erfc(math.sqrt(statistic / 2)), exact=False)
    tail = sum(math.comb(total, index) for index in range(min(b, c) + 1))
    return McNemarTest(p_value=min(1.0, 2 * tail / 2**total), exact=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTest:
    """One vote per stimulus; `underpowered` when no outcome could reach p <= 0.05."""

    wins: int
    losses: int
    ties: int
    p_value: float | None
    underpowered: bool


def sign_test(votes: Sequence[tuple[int, int]]) -> SignTest:
    """Sign test over the (wins, losses) of the counted trials of each stimulus."""
    wins = sum(won > lost for won, lost in votes)
    losses = sum(won < lost for won, lost in votes)
    return SignTest(
        wins=wins,
        losses=losses,
        ties=len(votes) - wins - losses,
        p_value=mcnemar(losses, wins).p_value,
        underpowered=wins + losses < _MIN_VOTES,
    )


def t_quantile(p: float, df: float) -> float:
    """Quantile of Student's t distribution, accurate to 1e-9; 0 < p < 1 and df > 0, else `ValueError`."""
    if not 0 < p < 1 or df <= 0:
        raise ValueError(f"t_quantile needs 0 < p < 1 and df > 0, not p = {p}, df = {df}")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    if p == 0.5:
        return 0.0
    tail = 1 - p
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > tail:
        low, high = high, high * 2
    # The tail falls strictly, so halving ends at neighbouring doubles.
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if _upper_tail(middle, df) > tail else (low, middle)
    return high


def _upper_tail(t: float, df: float) -> float:
    """P(T > t) for t >= 0."""
    if t == 0:
        return 0.5
    x = df / (df + t * t)
    return _incomplete_beta(x, t * t / (df + t * t), df / 2, 0.5) / 2


def _incomplete_beta(x: float, complement: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b); `complement` is 1 - x without its rounding error."""
    front = math.exp(_log_inverse_beta(a, b) + a * math.log(x) + b * math.log(complement))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(x, a, b) / a
    return 1 - front * _continued_fraction(complement, b, a) / b


def _log_inverse_beta(a: float, b: float) -> float:
    """log(1 / B(a, b)) for b = 1/2; for large a by its series, because the difference of `lgamma`s loses digits."""
    if a < 50:
        return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    ratio = 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return ratio - math.lgamma(0.5)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return result
