"""`max-repeat`: the agent does not do the same thing over and over."""

from __future__ import annotations

from pydantic import Field

from vally import GraderInput, GraderResult, describe_grader_value
from vally_grader_loops.streams import Match, WatchConfig, watched_streams
from vally_grader_loops.stretches import Stretch, worst_stretch

KEYWORD = "max-repeat"


class MaxRepeatConfig(WatchConfig):
    """The longest run allowed."""

    max: int = Field(ge=1)
    match: Match = "observation"


class MaxRepeat:
    """Fails when some action, or some cycle of actions, is repeated too often."""

    def grade(self, input: GraderInput[MaxRepeatConfig]) -> GraderResult:
        config = input.config
        worst = worst_stretch(watched_streams(input), config.max_cycle_period, config.max)
        longest = worst.repetitions if worst else 0
        passed = longest <= config.max
        return GraderResult.verdict(
            passed,
            _evidence(config, worst, passed),
            name=KEYWORD,
            metadata={
                "longestRun": longest,
                "max": config.max,
                "match": config.match,
                "period": worst.period if worst else None,
                "tools": list(worst.tools) if worst else [],
                "firstCall": worst.first_call if worst else None,
            },
        )

    def default_name(self, config: MaxRepeatConfig) -> str:
        target = " ".join([str(config.max), ", ".join(config.tools)])
        return f"{KEYWORD} {describe_grader_value(target)}"

    def asserts_absence(self, config: MaxRepeatConfig) -> bool:
        return True


def _evidence(config: MaxRepeatConfig, worst: Stretch | None, passed: bool) -> str:
    if passed or worst is None:
        longest = worst.repetitions if worst else 0
        return f"No action repeated more than {config.max} time(s) in a row (longest run: {longest})"
    shown = ", ".join(f"'{tool}'" for tool in worst.tools)
    repeated = shown if worst.period == 1 else f"Cycle of {worst.period} actions ({shown})"
    return f"{repeated} repeated {worst.repetitions} times in a row (max {config.max})"
