"""`loop-outcome`: the agent got stuck in a loop exactly when that was expected."""

from __future__ import annotations

from pydantic import Field

from vally import GraderInput, GraderResult, Trajectory
from vally_grader_loops.streams import Match, WatchConfig, watched_streams
from vally_grader_loops.stretches import Stretch, worst_stretch

KEYWORD = "loop-outcome"


class LoopOutcomeConfig(WatchConfig):
    """More retries than these are a loop; N equal calls in a row are N - 1 retries."""

    max_acceptable_retries: int = Field(ge=0)
    should_loop: bool = False
    match: Match = "name-args"


class LoopOutcome:
    """Compares whether the agent looped with what was expected; reaching the iteration cap is looping too."""

    def grade(self, input: GraderInput[LoopOutcomeConfig]) -> GraderResult:
        config = input.config
        worst = worst_stretch(watched_streams(input), config.max_cycle_period, config.max_acceptable_retries + 1)
        retries = worst.repetitions - 1 if worst else 0
        capped = _reached_cap(input.full_trajectory)
        looped = capped or retries > config.max_acceptable_retries
        expected = "a loop" if config.should_loop else "no loop"
        return GraderResult.verdict(
            looped == config.should_loop,
            f"{_observation(config, worst, capped)}; expected {expected}",
            name=KEYWORD,
            metadata={
                "looped": looped,
                "shouldLoop": config.should_loop,
                "retries": retries,
                "maxAcceptableRetries": config.max_acceptable_retries,
                "period": worst.period if worst else None,
                "iterationCapReached": capped,
            },
        )

    def default_name(self, config: LoopOutcomeConfig) -> str:
        return f"{KEYWORD} {config.max_acceptable_retries}{' loop expected' if config.should_loop else ''}"

    def asserts_absence(self, config: LoopOutcomeConfig) -> bool:
        return not config.should_loop


def _reached_cap(trajectory: Trajectory) -> bool:
    return trajectory.end_reason == "iteration_cap" or trajectory.metadata.get("iterationCapReached") is True


def _observation(config: LoopOutcomeConfig, worst: Stretch | None, capped: bool) -> str:
    acceptable = config.max_acceptable_retries
    retries = worst.repetitions - 1 if worst else 0
    if worst is not None and retries > acceptable:
        shown = ", ".join(f"'{tool}'" for tool in worst.tools)
        repeated = shown if worst.period == 1 else f"cycle of {worst.period} actions ({shown})"
        return f"Loop detected: {repeated} retried {retries} time(s) (acceptable: {acceptable})"
    if capped:
        return "Loop detected: simulation iteration cap reached"
    return f"No loop detected (most retries: {retries}, acceptable: {acceptable})"
