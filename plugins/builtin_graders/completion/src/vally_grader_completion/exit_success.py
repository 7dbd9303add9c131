"""`exit-success`: the agent said something."""

from __future__ import annotations

from vally import GraderInput, GraderResult

KEYWORD = "exit-success"


class ExitSuccess:
    """Passes when the output is not blank."""

    def grade(self, input: GraderInput[object]) -> GraderResult:
        spoke = bool(input.trajectory.output.strip())
        return GraderResult.verdict(
            spoke, "Agent completed successfully" if spoke else "Agent produced no output", name=KEYWORD
        )

    def default_name(self, config: object) -> str:
        return KEYWORD
