"""Pairs of trials: same stimulus, same trial index, both usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from vally import VallyError, name_key
from vally_command_compare.sides import Attempt, Side


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trials of one stimulus."""

    baseline: Attempt
    treatment: Attempt

    @property
    def censored(self) -> str | None:
        """Why the pair is not judged: a limit ended one of the two; None when it can be."""
        ends = (("baseline", self.baseline.cut_short), ("treatment", self.treatment.cut_short))
        cut = [f"{side} {end}" for side, end in ends if end]
        return f"{self.baseline.label}: {', '.join(cut)}" if cut else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs in the order of the baseline, and what is left over on either side."""

    pairs: tuple[Pair, ...]
    unmatched_baseline: tuple[str, ...]
    unmatched_treatment: tuple[str, ...]

    @property
    def judged(self) -> tuple[Pair, ...]:
        """The pairs that can be compared."""
        return tuple(pair for pair in self.pairs if pair.censored is None)

    @property
    def censored(self) -> tuple[str, ...]:
        """The pairs that a limit makes worthless, in words."""
        return tuple(text for pair in self.pairs if (text := pair.censored) is not None)


def pair_sides(baseline: Side, treatment: Side) -> Pairing:
    """Pair the trials of two sides; raises `VallyError` when names are ambiguous or nothing pairs.

    Names that repeat on a side are told apart by model, then by eval, as far as both sides have the same ones.
    """
    left, right = _distinct(baseline, treatment)
    others = {_identity(attempt): attempt for attempt in right if attempt.usable}
    pairs = [
        Pair(attempt, others[_identity(attempt)]) for attempt in left if attempt.usable and _identity(attempt) in others
    ]
    if not pairs:
        raise VallyError(
            "no trial of the baseline pairs with one of the treatment",
            where=f"{baseline.name}, {treatment.name}",
            hints=["trials pair by stimulus name and trial index; both must have succeeded and have a trajectory"],
        )
    paired = {_identity(pair.baseline) for pair in pairs}
    return Pairing(
        pairs=tuple(pairs),
        unmatched_baseline=_leftovers(left, paired),
        unmatched_treatment=_leftovers(right, paired),
    )


def _leftovers(attempts: Iterable[Attempt], paired: set[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(attempt.label for attempt in attempts if _identity(attempt) not in paired)


def _identity(attempt: Attempt) -> tuple[str, int]:
    return name_key(attempt.stimulus), attempt.trial_index


def _distinct(baseline: Side, treatment: Side) -> tuple[list[Attempt], list[Attempt]]:
    """The trials with names that are unique on each side, made longer by model and eval where needed."""
    left, right = list(baseline.attempts), list(treatment.attempts)
    for part in (_model, _eval):
        values = {part(attempt) for attempt in left}
        if len(values) > 1 and values == {part(attempt) for attempt in right} and _repeats(left, right):
            left, right = _longer(left, part), _longer(right, part)
    for side, attempts in ((baseline, left), (treatment, right)):
        repeated = _repeats(attempts)
        if repeated:
            name, index = repeated[0]
            raise VallyError(
                f"'{name}' (trial {index}) occurs more than once",
                where=side.name,
                hints=["cut slices with one model and one eval each, and compare those"],
            )
    return left, right


def _model(attempt: Attempt) -> str:
    return attempt.model


def _eval(attempt: Attempt) -> str:
    return attempt.eval_name


def _longer(attempts: Iterable[Attempt], part: Callable[[Attempt], str]) -> list[Attempt]:
    return [replace(attempt, stimulus=f"{attempt.stimulus} [{part(attempt)}]") for attempt in attempts]


def _repeats(*sides: Iterable[Attempt]) -> list[tuple[str, int]]:
    counts = (Counter(map(_identity, attempts)) for attempts in sides)
    return [identity for counted in counts for identity, number in counted.items() if number > 1]
