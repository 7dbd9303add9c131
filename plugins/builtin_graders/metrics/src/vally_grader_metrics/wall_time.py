"""`wall-time`: the elapsed time stays within a budget."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from vally import Config, GraderInput, GraderResult, InvalidDuration, parse_duration
from vally_grader_metrics.budget import grade_budget

KEYWORD = "wall-time"


def _check_duration(value: Any, info: ValidationInfo) -> Any:
    try:
        valid = isinstance(value, str) and parse_duration(value) >= 0
    except InvalidDuration:
        valid = False
    if not valid:
        raise ValueError(f"'{info.field_name}' must be a duration with a unit")
    return value


class WallTimeConfig(Config):
    """The longest time allowed, kept as written."""

    max: Annotated[str, BeforeValidator(_check_duration)]


class WallTime:
    """Compares the elapsed time of the view with the limit, in milliseconds."""

    def grade(self, input: GraderInput[WallTimeConfig]) -> GraderResult:
        metrics, longest = input.trajectory.metrics, input.config.max
        elapsed = None if metrics is None else metrics.wall_time_ms
        shown = "" if elapsed is None else _shown(elapsed)
        return grade_budget(KEYWORD, elapsed, parse_duration(longest), shown=(shown, longest), noun="wall time")

    def default_name(self, config: WallTimeConfig) -> str:
        return f"{KEYWORD} {config.max}"

    def asserts_absence(self, config: WallTimeConfig) -> bool:
        return True


def _shown(milliseconds: int) -> str:
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    tenths = (milliseconds + 50) // 100
    return f"{tenths // 10}.{tenths % 10}s"
