"""`transcript-contains` and `transcript-not-contains`: some, or no, message of the agent has a literal text."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, contains_literal, describe_grader_value
from vally_grader_output.contains_config import ContainsConfig
from vally_grader_output.transcript import grade_messages, messages


class TranscriptContains:
    """Searches every message of the view."""

    keyword: ClassVar = "transcript-contains"

    def grade(self, input: GraderInput[ContainsConfig]) -> GraderResult:
        config = input.config
        return grade_messages(
            messages(input.trajectory),
            lambda text: contains_literal(text, config.text, case_sensitive=config.case_sensitive),
            lambda found: f"'{config.text}' {'found' if found else 'NOT found'} in transcript",
            negate=config.negate,
            name=self.keyword,
        )

    def default_name(self, config: ContainsConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.text)}"

    def asserts_absence(self, config: ContainsConfig) -> bool:
        return config.negate


class TranscriptNotContains(TranscriptContains):
    """The negated keyword."""

    keyword = "transcript-not-contains"
