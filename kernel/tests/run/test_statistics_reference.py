"""Formulas against the packages that are the reference for them, on many inputs."""

from __future__ import annotations

import math
import random

import pytest

from vally import (
    clustered_mean,
    mcnemar,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    pooled_mean,
    sign_test,
    t_quantile,
    wilson_interval,
)

stats = pytest.importorskip("scipy.stats")
EXACT = 1e-9


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 50, 1000, 10**6])
def test_wilson(n: int) -> None:
    for c in sorted({0, 1, n // 3, n // 2, n - 1, n}):
        expected = stats.binomtest(c, n).proportion_ci(0.95, method="wilson")
        found = wilson_interval(c, n)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=EXACT)


def test_quantiles_of_student() -> None:
    for df in (1, 1.5, 2, 3, 5, 10, 29.5, 49, 99, 100, 101, 1e3, 1e5, 1e7):
        for p in (0.501, 0.55, 0.7, 0.9, 0.95, 0.975, 0.99, 0.9995):
            assert t_quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=EXACT), (p, df)


def test_mcnemar() -> None:
    for b in (0, 1, 2, 5, 9, 30, 333, 499):
        for c in (0, 1, 3, 5, 12, 30, 400, 501):
            if b + c:
                expected = stats.binomtest(min(b, c), b + c).pvalue
                assert mcnemar(b, c).p_value == pytest.approx(expected, abs=EXACT), (b, c)
    for b, c in ((500, 501), (700, 600), (2000, 1000), (1, 1000)):
        expected = stats.chi2.sf((abs(b - c) - 1) ** 2 / (b + c), 1)
        found = mcnemar(b, c)
        assert not found.exact
        assert found.p_value == pytest.approx(float(expected), abs=EXACT)


def test_signs() -> None:
    chance = random.Random(3)
    for _ in range(50):
        votes = [(chance.randrange(4), chance.randrange(4)) for _ in range(chance.randrange(1, 30))]
        wins, losses = sum(a > b for a, b in votes), sum(a < b for a, b in votes)
        found = sign_test(votes)
        assert (found.wins, found.losses, found.ties) == (wins, losses, len(votes) - wins - losses)
        if wins + losses:
            assert found.p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, abs=EXACT)


def test_means() -> None:
    chance = random.Random(4)
    for count in (2, 3, 10, 200):
        values = [chance.uniform(-1, 1) for _ in range(count)]
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        found = mean_interval(values)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=EXACT)
        over_clusters = clustered_mean(values)
        assert over_clusters.std_error == pytest.approx(float(stats.sem(values)), abs=EXACT)
        assert (over_clusters.low, over_clusters.high) == pytest.approx((expected.low, expected.high), abs=EXACT)


def test_cluster_robust_errors() -> None:
    """The sandwich of an ordinary least squares fit on a constant, clustered, with the factor G / (G - 1)."""
    numpy = pytest.importorskip("numpy")
    chance = random.Random(5)
    for _ in range(20):
        clusters = [[chance.random() for _ in range(chance.randrange(1, 6))] for _ in range(chance.randrange(2, 9))]
        values = numpy.concatenate([numpy.array(cluster) for cluster in clusters])
        groups = numpy.concatenate([numpy.full(len(cluster), index) for index, cluster in enumerate(clusters)])
        design = numpy.ones((len(values), 1))
        bread = numpy.linalg.inv(design.T @ design)
        residuals = values - values.mean()
        meat = sum(
            (s := design[groups == g].T @ residuals[groups == g]).reshape(-1, 1) @ s.reshape(1, -1)
            for g in range(len(clusters))
        )
        variance = (bread @ meat @ bread)[0, 0] * len(clusters) / (len(clusters) - 1)
        found = pooled_mean(clusters)
        assert found.mean == pytest.approx(values.mean(), abs=EXACT)
        assert found.std_error == pytest.approx(math.sqrt(variance), abs=EXACT)


def test_chances_of_k_trials() -> None:
    for n in (1, 3, 10, 200):
        for c in sorted({0, 1, n // 2, n}):
            for k in sorted({1, (n + 1) // 2, n}):
                drawn = stats.hypergeom(n, c, k)
                assert pass_at_k(n, c, k) == pytest.approx(float(drawn.sf(0)), abs=EXACT)
                assert pass_hat_k(n, c, k) == pytest.approx(float(drawn.pmf(k)), abs=EXACT)
