"""`transcript-matches` and `transcript-not-matches`: some, or no, message of the agent matches a regular expression."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, compile_regex, describe_grader_value, matches_every_text, matches_no_text
from vally_grader_output.matches_config import MatchesConfig
from vally_grader_output.transcript import grade_messages, messages


class TranscriptMatches:
    """Searches every message of the view."""

    keyword: ClassVar = "transcript-matches"

    def grade(self, input: GraderInput[MatchesConfig]) -> GraderResult:
        config = input.config
        regex = compile_regex(config.pattern)
        return grade_messages(
            messages(input.trajectory),
            lambda text: regex.search(text) is not None,
            lambda found: f"Transcript {'matches' if found else 'does not match'} pattern /{config.pattern}/",
            negate=config.negate,
            name=self.keyword,
        )

    def default_name(self, config: MatchesConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.pattern)}"

    def asserts_absence(self, config: MatchesConfig) -> bool:
        return config.negate

    def settled_verdict(self, config: MatchesConfig) -> bool | None:
        """Only a failure is certain, because a run without messages fails in any case."""
        hopeless = matches_every_text(config.pattern) if config.negate else matches_no_text(config.pattern)
        return False if hopeless else None


class TranscriptNotMatches(TranscriptMatches):
    """The negated keyword."""

    keyword = "transcript-not-matches"
