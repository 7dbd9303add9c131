"""`file-contains` and `file-not-contains`: a literal text occurs in matching files, or is missing from all."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, describe_grader_value, join_capped
from vally_grader_files.config import ContainsConfig
from vally_grader_files.content import Wording, candidates, grade_content, no_verdict_on_content


class FileContains:
    """Reads the matching files until one has the text."""

    keyword: ClassVar = "file-contains"

    def grade(self, input: GraderInput[ContainsConfig]) -> GraderResult:
        value = input.config.value
        found = candidates(input)
        if found.problem is not None:
            return no_verdict_on_content(found, found.problem, self.keyword)
        wording = Wording(
            found=lambda path: f"'{value}' found in {path}",
            not_found=lambda paths: f"'{value}' NOT found in {join_capped(paths, len(paths))}",
        )
        return grade_content(input, found, lambda text: value in text, wording, self.keyword)

    def default_name(self, config: ContainsConfig) -> str:
        return f"{self.keyword} {describe_grader_value(f'{config.path} {config.value}')}"


class FileNotContains(FileContains):
    """The negated keyword."""

    keyword = "file-not-contains"
