"""How many stimuli a comparison needs."""

from __future__ import annotations

import math

POWER = 0.8
LEVEL = 0.05
_MOST = 1_000_000


def stimuli_needed(std_dev: float | None, effect: float) -> int | None:
    """Stimuli at which a paired two-sided t test at 5 % finds a mean difference of `effect` with a power of 80 %.

    `std_dev` is the standard deviation of the stimulus means, `effect` > 0 the difference on the scale -1..+1. None
    when nothing is known of the spread (fewer than two stimuli) or when it takes more than a million. The power is that
    of the noncentral t distribution (Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 2).
    """
    if std_dev is None or effect <= 0:
        return None
    if std_dev == 0:
        return 2
    low, high = 2, 4
    while power_of(high, effect / std_dev) < POWER:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect / std_dev) >= POWER else (middle + 1, high)
    return low


def power_of(count: int, standardised: float) -> float:
    """Power of the paired t test with `count` >= 2 differences whose mean is `standardised` deviations from zero."""
    from scipy.stats import nct, t

    degrees = count - 1
    critical = t.ppf(1 - LEVEL / 2, degrees)
    shift = standardised * math.sqrt(count)
    # Far from zero the noncentral distribution underflows; the answer is certain there.
    upper = 1.0 if shift > critical + 40 else float(nct.sf(critical, degrees, shift))
    lower = float(nct.cdf(-critical, degrees, shift)) if shift < 30 else 0.0
    return upper + lower
