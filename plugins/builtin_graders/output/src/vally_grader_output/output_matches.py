"""`output-matches` and `output-not-matches`: the final answer matches, or does not match, a regular expression."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, compile_regex, describe_grader_value, matches_every_text, matches_no_text
from vally_grader_output.matches_config import MatchesConfig


class OutputMatches:
    """Searches the output of the view."""

    keyword: ClassVar = "output-matches"

    def grade(self, input: GraderInput[MatchesConfig]) -> GraderResult:
        config = input.config
        matched = compile_regex(config.pattern).search(input.trajectory.output) is not None
        return GraderResult.verdict(
            matched != config.negate,
            f"Output {'matches' if matched else 'does not match'} pattern /{config.pattern}/",
            name=self.keyword,
        )

    def default_name(self, config: MatchesConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.pattern)}"

    def asserts_absence(self, config: MatchesConfig) -> bool:
        return config.negate

    def settled_verdict(self, config: MatchesConfig) -> bool | None:
        if matches_every_text(config.pattern):
            return not config.negate
        return config.negate if matches_no_text(config.pattern) else None


class OutputNotMatches(OutputMatches):
    """The negated keyword."""

    keyword = "output-not-matches"
