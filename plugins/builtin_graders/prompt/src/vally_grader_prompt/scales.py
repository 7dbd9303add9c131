"""The scales on which judges score, and how their scores become 0..1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from vally import es_number

ScaleName = Literal["binary", "scale_1_5", "scale_1_10"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Scores from `low` to `high`; without `fractions` only these two."""

    low: int
    high: int
    fractions: bool
    description: str

    def normalise(self, score: float) -> float:
        """The score as a number from 0 to 1."""
        return (score - self.low) / (self.high - self.low)

    def problem(self, score: float) -> str | None:
        """Why a score does not lie on the scale, or None."""
        if self.fractions:
            fits, wanted = self.low <= score <= self.high, f"from {self.low} to {self.high}"
        else:
            fits, wanted = score in (self.low, self.high), f"{self.low} or {self.high}"
        return None if fits else f"must be {wanted}, not {es_number(score)}"


SCALES: Mapping[ScaleName, Scale] = MappingProxyType(
    {
        "binary": Scale(0, 1, False, "Scores are 0 or 1 and nothing between: 0 means not met, 1 means met."),
        "scale_1_5": Scale(
            1,
            5,
            True,
            "Scores go from 1 to 5, fractions allowed: 1 means not met at all, 2 mostly not met, 3 met in part,"
            " 4 met but for small flaws, 5 met completely.",
        ),
        "scale_1_10": Scale(
            1,
            10,
            True,
            "Scores go from 1 to 10, fractions allowed: 1 means not met at all, 4 mostly not met, 6 met in part,"
            " 8 met but for small flaws, 10 met completely.",
        ),
    }
)
