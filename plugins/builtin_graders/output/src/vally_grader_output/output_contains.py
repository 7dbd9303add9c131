"""`output-contains` and `output-not-contains`: the final answer has, or lacks, a literal text."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, contains_literal, describe_grader_value
from vally_grader_output.contains_config import ContainsConfig


class OutputContains:
    """Searches the output of the view."""

    keyword: ClassVar = "output-contains"

    def grade(self, input: GraderInput[ContainsConfig]) -> GraderResult:
        config = input.config
        found = contains_literal(input.trajectory.output, config.text, case_sensitive=config.case_sensitive)
        return GraderResult.verdict(
            found != config.negate, f"'{config.text}' {'found' if found else 'NOT found'} in output", name=self.keyword
        )

    def default_name(self, config: ContainsConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.text)}"

    def asserts_absence(self, config: ContainsConfig) -> bool:
        return config.negate


class OutputNotContains(OutputContains):
    """The negated keyword."""

    keyword = "output-not-contains"
