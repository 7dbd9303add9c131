"""The numbers of a comparison: against published figures, against SciPy, and over many simulated experiments."""

from __future__ import annotations

import random

import pytest
from scipy import stats as scipy_stats

from vally import clustered_mean, mcnemar, mean, mean_interval, sign_test, wilson_interval
from vally_command_compare.power import power_of, stimuli_needed

EXPERIMENTS = 1000


@pytest.mark.parametrize(
    ("standardised", "needed"),
    # Two-sided paired t test at 5 %, power 80 %: Cohen 1988, and the tables of G*Power 3.1.
    [(0.2, 199), (0.5, 34), (0.8, 15)],
)
def test_the_advice_agrees_with_published_tables(standardised: float, needed: int) -> None:
    assert stimuli_needed(1.0, standardised) == needed


def test_advice_at_the_ends() -> None:
    assert stimuli_needed(None, 0.2) is None
    assert stimuli_needed(0.0, 0.2) == 2
    assert stimuli_needed(0.1, 100.0) == 2
    assert stimuli_needed(1.0, 1e-9) is None
    assert power_of(2, 1e6) == pytest.approx(1)


def test_power_grows_with_stimuli_and_with_the_effect() -> None:
    powers = [power_of(count, 0.5) for count in range(2, 60)]
    assert powers == sorted(powers)
    effects = [power_of(20, effect / 10) for effect in range(11)]
    assert effects == sorted(effects)
    assert effects[0] == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_intervals_and_tests_agree_with_scipy(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.choice([-1, -0.4, 0, 0.4, 1]) for _ in range(rng.randrange(3, 40))]
    ours = mean_interval(values)
    low, high = scipy_stats.t.interval(0.95, len(values) - 1, mean(values), scipy_stats.sem(values))
    assert (ours.low, ours.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
    before, after = rng.randrange(20), rng.randrange(1, 20)
    assert mcnemar(before, after).p_value == pytest.approx(
        scipy_stats.binomtest(before, before + after).pvalue, abs=1e-9
    )
    passed, total = after, after + before
    wilson = scipy_stats.binomtest(passed, total).proportion_ci(method="wilson")
    interval = wilson_interval(passed, total)
    assert interval is not None
    assert (interval.low, interval.high) == (pytest.approx(wilson.low, abs=1e-9), pytest.approx(wilson.high, abs=1e-9))


def experiment(rng: random.Random, effect: float, stimuli: int = 12, trials: int = 4) -> list[list[float]]:
    """Trial scores by stimulus: each stimulus has a preference of its own beside the effect."""
    found = []
    for _ in range(stimuli):
        own = rng.gauss(effect, 0.3)
        found.append([max(-1.0, min(1.0, rng.gauss(own, 0.3))) for _ in range(trials)])
    return found


def finds_a_difference(scores: list[list[float]]) -> bool:
    estimate = clustered_mean([mean(group) for group in scores])
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low > 0 or estimate.high < 0


def sign_test_finds(scores: list[list[float]]) -> bool:
    votes = [(sum(score > 0 for score in group), sum(score < 0 for score in group)) for group in scores]
    p_value = sign_test(votes).p_value
    return p_value is not None and p_value <= 0.05


def rate(effect: float, find: object, seed: int = 7) -> float:
    assert callable(find)
    rng = random.Random(seed)
    return sum(find(experiment(rng, effect)) for _ in range(EXPERIMENTS)) / EXPERIMENTS


def test_clustered_experiments_without_a_difference_find_one_in_at_most_six_of_a_hundred() -> None:
    assert rate(0, finds_a_difference) <= 0.06
    assert rate(0, sign_test_finds) <= 0.06


def test_an_interval_over_trials_alone_would_find_far_too_many() -> None:
    def by_trials(scores: list[list[float]]) -> bool:
        interval = mean_interval([score for group in scores for score in group])
        assert interval.low is not None
        assert interval.high is not None
        return interval.low > 0 or interval.high < 0

    assert rate(0, by_trials) > 0.1


def test_real_differences_are_found_as_often_as_predicted() -> None:
    found = [rate(effect, finds_a_difference) for effect in (0.0, 0.15, 0.3, 0.45)]
    assert found == sorted(found)
    # The deviation of a stimulus mean: its own preference and the mean of four trials.
    deviation = (0.3**2 + 0.3**2 / 4) ** 0.5
    assert found[2] == pytest.approx(power_of(12, 0.3 / deviation), abs=0.06)
