"""Intervals and tests."""

from __future__ import annotations

import math

import pytest

from vally.run.statistics import (
    clustered_mean,
    mcnemar,
    mean_interval,
    paired_interval,
    pooled_mean,
    sign_test,
    t_quantile,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("c", "n", "low", "high"),
    [
        pytest.param(0, 1, 0, 0.793451, id="WI-1"),
        pytest.param(1, 1, 0.206549, 1, id="WI-2"),
        pytest.param(1, 3, 0.061492, 0.792340, id="WI-3"),
        pytest.param(2, 3, 0.207660, 0.938508, id="WI-4"),
        pytest.param(4, 5, 0.375535, 0.963776, id="WI-5"),
        pytest.param(5, 5, 0.565518, 1, id="WI-6"),
        pytest.param(8, 10, 0.490162, 0.943318, id="WI-7"),
        pytest.param(45, 50, 0.786398, 0.956524, id="WI-8"),
        pytest.param(0, 20, 0, 0.161125, id="WI-9"),
    ],
)
def test_wilson_interval(c: int, n: int, low: float, high: float) -> None:
    interval = wilson_interval(c, n)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)
    assert 0 <= interval.low <= interval.high <= 1


def test_no_trials_have_no_interval() -> None:
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(
    ("df", "quantile"),
    [
        pytest.param(1, 12.706204736, id="TQ-1"),
        pytest.param(2, 4.302652730, id="TQ-2"),
        pytest.param(3, 3.182446305, id="TQ-3"),
        pytest.param(4, 2.776445105, id="TQ-4"),
        pytest.param(9, 2.262157163, id="TQ-5"),
        pytest.param(30, 2.042272456, id="TQ-6"),
        pytest.param(999, 1.962341461, id="TQ-7"),
    ],
)
def test_t_quantile(df: int, quantile: float) -> None:
    assert t_quantile(0.975, df) == pytest.approx(quantile, abs=1e-9)
    assert t_quantile(0.025, df) == pytest.approx(-quantile, abs=1e-9)


@pytest.mark.parametrize("p", [0.51, 0.6, 0.75, 0.9, 0.975, 0.9999])
def test_t_quantile_against_closed_forms(p: float) -> None:
    assert t_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9)
    alpha = 4 * p * (1 - p)
    assert t_quantile(p, 2) == pytest.approx((2 * p - 1) * math.sqrt(2 / alpha), rel=1e-9)
    cosine = math.cos(math.acos(math.sqrt(alpha)) / 3) / math.sqrt(alpha)
    assert t_quantile(p, 4) == pytest.approx(2 * math.sqrt(cosine - 1), rel=1e-9)


def test_t_quantile_nears_the_normal_one() -> None:
    assert t_quantile(0.5, 7) == 0
    assert t_quantile(0.975, 1e9) == pytest.approx(1.959963984540054, abs=1e-8)


@pytest.mark.parametrize(("p", "df"), [(0, 1), (1, 1), (0.5, 0), (0.9, -1)])
def test_quantiles_that_do_not_exist(p: float, df: float) -> None:
    with pytest.raises(ValueError, match="needs"):
        t_quantile(p, df)


Clusters = list[list[float]]


@pytest.mark.parametrize(
    ("clusters", "centre", "error", "bounds", "unclipped", "pooled", "pooled_error"),
    [
        pytest.param(
            [[1, 1, 1], [0, 0, 0], [1, 0, 1]],
            0.555556,
            0.293972,
            (0, 1),
            (-0.709305, 1.820417),
            0.555556,
            0.293972,
            id="CL-1",
        ),
        pytest.param([[1, 1, 1, 1, 1], [0]], 0.5, 0.5, (0, 1), None, 0.833333, 0.277778, id="CL-2"),
        pytest.param([[1, 1], [1, 1], [1, 1]], 1, 0, (1, 1), (1, 1), 1, 0, id="CL-3"),
        pytest.param(
            [[0.5, 0.7], [0.9], [1, 1, 0.4]],
            0.766667,
            0.088192,
            (0.387208, 1),
            (0.387208, 1.146125),
            0.75,
            0.075,
            id="CL-4",
        ),
        pytest.param([[1, 0, 1]], 0.666667, None, (None, None), (None, None), 0.666667, None, id="CL-5"),
    ],
)
def test_clusters(
    clusters: Clusters,
    centre: float,
    error: float | None,
    bounds: tuple[float | None, float | None],
    unclipped: tuple[float | None, float | None] | None,
    pooled: float,
    pooled_error: float | None,
) -> None:
    found = clustered_mean([math.fsum(cluster) / len(cluster) for cluster in clusters])
    assert (found.mean, found.std_error) == pytest.approx((centre, error), abs=1e-6)
    if unclipped is not None:
        assert (found.low, found.high) == pytest.approx(unclipped, abs=1e-6)
    clipped = found.clipped()
    assert (clipped.low, clipped.high) == pytest.approx(bounds, abs=1e-6)
    over_trials = pooled_mean(clusters)
    assert (over_trials.mean, over_trials.std_error) == pytest.approx((pooled, pooled_error), abs=1e-6)


def test_no_clusters() -> None:
    assert clustered_mean([]).mean is None
    assert pooled_mean([[]]).mean is None


@pytest.mark.parametrize(
    ("values", "centre", "deviation", "low", "high"),
    [
        pytest.param([-1, 0], -0.5, 0.707107, -6.853102, 5.853102, id="PD-1"),
        pytest.param([0, 0.4, 1], 0.466667, 0.503322, -0.783655, 1.716989, id="PD-2"),
        pytest.param([1, -1, 0, 0.4], 0.1, 0.840635, -1.237637, 1.437637, id="PD-3"),
        pytest.param([0.4, 0.4, 0, -0.4, 1, 0], 0.233333, 0.480278, -0.270687, 0.737354, id="PD-4"),
        pytest.param([0.4], 0.4, None, None, None, id="PD-5"),
        pytest.param([], None, None, None, None, id="nothing"),
    ],
)
def test_mean_interval(
    values: list[float], centre: float | None, deviation: float | None, low: float | None, high: float | None
) -> None:
    found = mean_interval(values)
    assert (found.mean, found.std_dev, found.low, found.high) == pytest.approx((centre, deviation, low, high), abs=1e-6)


@pytest.mark.parametrize("groups", [[[0.4, 0.4, 0], [-0.4, 0, 0], [1, 0.4, 0.4]]], ids=["PD-6"])
def test_trials_and_stimuli_have_different_intervals(groups: Clusters) -> None:
    trials = mean_interval([value for group in groups for value in group])
    assert (trials.mean, trials.low, trials.high) == pytest.approx((0.244444, -0.060880, 0.549769), abs=1e-6)
    stimuli = clustered_mean([math.fsum(group) / len(group) for group in groups])
    assert (stimuli.mean, stimuli.low, stimuli.high) == pytest.approx((0.244444, -0.667660, 1.156549), abs=1e-6)


@pytest.mark.parametrize(
    "pairs",
    [{"s1": [(0.5, 1), (0.5, 0.5)], "s2": [(1, 1), (0.5, 1)], "s3": [(0, 0.5), (0, 0)], "none": []}],
    ids=["PD-7"],
)
def test_paired_interval(pairs: dict[str, list[tuple[float, float]]]) -> None:
    found = paired_interval(pairs)
    assert (found.mean, found.clusters, found.std_error, found.low, found.high) == (0.25, 3, 0, 0.25, 0.25)


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        pytest.param(0, 0, None, id="MC-1"),
        pytest.param(1, 1, 1, id="MC-2a"),
        pytest.param(10, 10, 1, id="MC-2b"),
        pytest.param(0, 5, 0.0625, id="MC-3"),
        pytest.param(0, 6, 0.03125, id="MC-4"),
        pytest.param(1, 8, 0.0390625, id="MC-5"),
        pytest.param(2, 10, 0.038574, id="MC-6"),
        pytest.param(5, 15, 0.041389, id="MC-7"),
    ],
)
def test_mcnemar(b: int, c: int, p: float | None) -> None:
    for found in (mcnemar(b, c), mcnemar(c, b)):
        assert found.p_value == (p if p is None else pytest.approx(p, abs=1e-6))
        assert found.exact


def test_mcnemar_of_many_pairs_is_approximate() -> None:
    exact, approximate = mcnemar(470, 530), mcnemar(471, 530)
    assert exact.exact
    assert not approximate.exact
    assert exact.p_value == pytest.approx(approximate.p_value, abs=5e-3)
    assert mcnemar(600, 600).p_value == 1


@pytest.mark.parametrize(
    ("votes", "counts", "p", "underpowered"),
    [
        pytest.param([(3, 0), (2, 1), (0, 2), (1, 1)], (2, 1, 1), 1, True, id="SG-1"),
        pytest.param([(1, 0)] * 6, (6, 0, 0), 0.03125, False, id="SG-2"),
        pytest.param([(1, 1)], (0, 0, 1), None, True, id="only ties"),
    ],
)
def test_sign_test(
    votes: list[tuple[int, int]], counts: tuple[int, int, int], p: float | None, underpowered: bool
) -> None:
    found = sign_test(votes)
    assert (found.wins, found.losses, found.ties) == counts
    assert (found.p_value, found.underpowered) == (p, underpowered)
