"""The verdict over a number and its upper bound."""

from __future__ import annotations

from vally import GraderResult, es_number


def grade_budget(keyword: str, value: int | None, limit: int, *, shown: tuple[str, str], noun: str) -> GraderResult:
    """Pass up to the limit; above it the score falls with the excess, to 0 at twice the limit.

    `shown` has value and limit as evidence prints them. A value that was not recorded fails.
    """
    metadata = {"value": value, "max": limit}
    if value is None:
        return GraderResult.verdict(False, f"No {noun} recorded in trajectory", name=keyword, metadata=metadata)
    passed = value <= limit
    measured = f"{shown[0]} {noun}"
    return GraderResult.verdict(
        passed,
        f"{measured} (within budget of {shown[1]})" if passed else f"{measured} exceeds max of {shown[1]}",
        score=1.0 if passed else max(0.0, 1 - (value - limit) / max(limit, 1)),
        name=keyword,
        metadata=metadata,
    )


def grade_count(keyword: str, value: int | None, limit: int, noun: str) -> GraderResult:
    """The same for plain numbers."""
    return grade_budget(keyword, value, limit, shown=(es_number(value or 0), es_number(limit)), noun=noun)
