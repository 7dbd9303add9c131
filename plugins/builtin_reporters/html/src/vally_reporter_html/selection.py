"""How much of which trial the page shows, so that its size has a bound whatever the size of the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

FULL_BYTES = 16_000_000
"""What the timelines, outputs and diffs of all trials together may take, about."""

PER_TRIAL_BYTES = 300_000
"""What one trial takes at most, because its parts are cut."""

MAX_LISTED = 2_000
"""Trials that have a place of their own; the others are cells of the matrix only."""

_OVERHEAD = 3_000
Key = tuple[int, int, int]
"""Index of the eval, of its stimulus, and of the trial."""


class Level(IntEnum):
    """How much of a trial is shown."""

    CELL = 0
    BRIEF = 1
    FULL = 2


@dataclass(slots=True)
class Selection:
    """Levels of the trials of a run; counts say what was left out."""

    levels: dict[Key, Level] = field(default_factory=dict)
    total: int = 0
    brief: int = 0
    cells: int = 0

    def level(self, key: Key) -> Level:
        """How much of that trial is shown."""
        return self.levels.get(key, Level.CELL)


def select(trials: Iterable[tuple[Key, bool, int]]) -> Selection:
    """Choose levels for (key, whether it failed or broke, bytes of its record) of all trials in plan order.

    Trials that failed or broke come first, then the others; within both the first trial of every stimulus comes
    before the second of any.
    """
    entries = sorted(trials, key=lambda entry: (not entry[1], entry[0][2]))
    chosen = Selection(total=len(entries))
    left = FULL_BYTES
    for number, (key, _, size) in enumerate(entries):
        need = min(size * 3 // 2, PER_TRIAL_BYTES) + _OVERHEAD
        if number >= MAX_LISTED:
            chosen.cells += 1
        elif need > left:
            chosen.levels[key] = Level.BRIEF
            chosen.brief += 1
        else:
            chosen.levels[key] = Level.FULL
            left -= need
    return chosen
