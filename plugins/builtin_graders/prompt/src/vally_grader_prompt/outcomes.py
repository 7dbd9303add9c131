"""Verdicts of comparisons, seen from the treatment, and how those of both orders combine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Side = Literal["A", "B"]
Verdict = Literal["A-much-better", "A-slightly-better", "equal", "B-slightly-better", "B-much-better"]
Winner = Literal["baseline", "treatment", "tie"]
Magnitude = Literal["much-better", "slightly-better", "equal", "slightly-worse", "much-worse"]

NO_REASONING = "(no reasoning given)"
_STRENGTHS_OF_B: Mapping[Verdict, int] = MappingProxyType(
    {"A-much-better": -2, "A-slightly-better": -1, "equal": 0, "B-slightly-better": 1, "B-much-better": 2}
)
_MAGNITUDES: Mapping[int, tuple[Magnitude, float, Winner]] = MappingProxyType(
    {
        2: ("much-better", 1.0, "treatment"),
        1: ("slightly-better", 0.4, "treatment"),
        0: ("equal", 0.0, "tie"),
        -1: ("slightly-worse", -0.4, "baseline"),
        -2: ("much-worse", -1.0, "baseline"),
    }
)


@dataclass(frozen=True, slots=True)
class Opinion:
    """One verdict; `strength` goes from -2 (the treatment is much worse) to 2."""

    strength: int
    reasoning: str

    @classmethod
    def of(cls, verdict: Verdict, reasoning: str, *, treatment: Side) -> Opinion:
        """A verdict on A and B, one of which is the treatment."""
        strength = _STRENGTHS_OF_B[verdict]
        return cls(strength if treatment == "B" else -strength, reasoning)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What two opinions amount to."""

    magnitude: Magnitude
    score: float
    winner: Winner
    evidence: str


def merged(first: Opinion, second: Opinion) -> Outcome:
    """Equal opinions stay, others meet half way, rounded towards equal; the reasoning is that of the first."""
    magnitude, score, winner = _MAGNITUDES[int((first.strength + second.strength) / 2)]
    evidence = first.reasoning if first.reasoning.strip() else NO_REASONING
    if first.strength * second.strength < 0:
        evidence = f"Position orders disagree: {evidence}"
    return Outcome(magnitude, score, winner, evidence)
