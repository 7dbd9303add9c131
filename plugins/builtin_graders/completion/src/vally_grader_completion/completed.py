"""`completed`: the session ended properly."""

from __future__ import annotations

from vally import GraderInput, GraderResult

KEYWORD = "completed"


class Completed:
    """Makes its checks in a fixed order; the first that fails decides."""

    def grade(self, input: GraderInput[object]) -> GraderResult:
        problem = _problem(input)
        return GraderResult.verdict(problem is None, problem or "Agent session completed successfully", name=KEYWORD)

    def default_name(self, config: object) -> str:
        return KEYWORD


def _problem(input: GraderInput[object]) -> str | None:
    view = input.trajectory
    types = [event.type for event in view.events]
    end_reason = input.full_trajectory.end_reason
    if not view.output.strip():
        return "Agent produced no output"
    if errors := types.count("error"):
        return f"{errors} error event(s) in trajectory"
    if "turn_end" not in types:
        return "No turn_end events found — session may have crashed mid-turn"
    if end_reason not in (None, "completed"):
        return f"Agent session ended early: {end_reason}"
    return None
