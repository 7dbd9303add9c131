"""How long work took by the times of records, pauses between the processes of one run left out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from vally.model.jsonio import parse_timestamp

Span = tuple[float, float]
"""Start and end in milliseconds of the wall clock."""


def record_span(started_at: str | None, duration_ms: int) -> Span | None:
    """When a trial ran; None when its record does not say when it began."""
    begun = parse_timestamp(started_at)
    if begun is None:
        return None
    start = begun.timestamp() * 1000
    return start, start + duration_ms


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same times, in order and without overlaps."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def busy_ms(busy: Iterable[Span], start: float = -math.inf, end: float = math.inf) -> int:
    """Milliseconds between two moments in which something ran; `busy` is what `merged` returns."""
    return round(math.fsum(max(0.0, min(until, end) - max(since, start)) for since, until in busy))
