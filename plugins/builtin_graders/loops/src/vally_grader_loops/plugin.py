"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_loops"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="max-repeat",
        summary="the agent does not do the same thing over and over",
        factory=f"{_PACKAGE}.max_repeat:MaxRepeat",
        config=f"{_PACKAGE}.max_repeat:MaxRepeatConfig",
        cost="free",
    )
    yield GraderSpec(
        name="loop-outcome",
        summary="the agent got stuck in a loop exactly when that was expected",
        factory=f"{_PACKAGE}.loop_outcome:LoopOutcome",
        config=f"{_PACKAGE}.loop_outcome:LoopOutcomeConfig",
        cost="free",
    )
