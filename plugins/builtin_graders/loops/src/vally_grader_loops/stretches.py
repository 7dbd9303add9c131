"""Stretches of a stream of calls that repeat with a period."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A call as a stream sees it: two are equal when their keys are. `index` is that among all calls of the view."""

    index: int
    tool: str
    key: Hashable


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a stream in which every call equals the one `period` before; `length` counts the first ones too."""

    period: int
    length: int
    tools: tuple[str, ...]
    first_call: int

    @property
    def repetitions(self) -> int:
        """How often the whole cycle occurs in a row."""
        return self.length // self.period


def worst_stretch(streams: Sequence[Sequence[WatchedCall]], longest_period: int, limit: int) -> Stretch | None:
    """The longest stretch of the smallest period with more than `limit` repetitions, else the most repeated one.

    Of equals the first in the view counts. None without any call.
    """
    longest = [_longest(streams, period) for period in range(1, longest_period + 1)]
    found = [stretch for stretch in longest if stretch is not None]
    over = next((stretch for stretch in found if stretch.repetitions > limit), None)
    return over or max(found, key=lambda stretch: stretch.repetitions, default=None)


def _longest(streams: Iterable[Sequence[WatchedCall]], period: int) -> Stretch | None:
    stretches = (stretch for stream in streams for stretch in _stretches(stream, period))
    return max(stretches, key=lambda stretch: (stretch.length, -stretch.first_call), default=None)


def _stretches(stream: Sequence[WatchedCall], period: int) -> Iterator[Stretch]:
    start = 0
    for end in range(1, len(stream) + 1):
        if end - start < period or (end < len(stream) and stream[end].key == stream[end - period].key):
            continue
        if _counts(stream[start:end], period):
            cycle = stream[start : start + period]
            yield Stretch(period, end - start, tuple(call.tool for call in cycle), cycle[0].index)
        start = end - period + 1


def _counts(stretch: Sequence[WatchedCall], period: int) -> bool:
    """A cycle of several calls needs two repetitions and must not itself be a smaller cycle repeated."""
    if period == 1:
        return True
    keys = [call.key for call in stretch[:period]]
    smaller = any(period % part == 0 and keys == keys[:part] * (period // part) for part in range(1, period))
    return len(stretch) >= 2 * period and not smaller
