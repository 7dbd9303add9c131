"""`diff-empty`: the run, or one turn, changed nothing."""

from __future__ import annotations

from vally import Config, GraderInput, GraderResult
from vally_grader_diff.recorded import EVIDENCE, diff_metadata, no_diff

KEYWORD = "diff-empty"


class DiffEmptyConfig(Config):
    """No keys."""

    def evidence(self) -> frozenset[str]:
        """What the run must record for it."""
        return EVIDENCE


class DiffEmpty:
    """Passes when the diff is blank."""

    def grade(self, input: GraderInput[DiffEmptyConfig]) -> GraderResult:
        if input.diff is None:
            return no_diff(input, KEYWORD)
        empty = not input.diff.strip()
        evidence = (
            "Workspace diff is empty" if empty else "Workspace diff is not empty — the stimulus changed the workspace"
        )
        return GraderResult.verdict(empty, evidence, name=KEYWORD, metadata=diff_metadata(input.diff))

    def default_name(self, config: DiffEmptyConfig) -> str:
        return KEYWORD
