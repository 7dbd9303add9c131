"""`file-matches` and `file-not-matches`: a regular expression matches in matching files, or in none."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, compile_regex, describe_grader_value
from vally_grader_files.config import MatchesConfig
from vally_grader_files.content import Wording, candidates, grade_content, no_verdict_on_content


class FileMatches:
    """Reads the matching files until the pattern matches in the whole text of one."""

    keyword: ClassVar = "file-matches"

    def grade(self, input: GraderInput[MatchesConfig]) -> GraderResult:
        config = input.config
        found = candidates(input)
        if found.problem is not None:
            return no_verdict_on_content(found, found.problem, self.keyword)
        regex = compile_regex(config.pattern)
        wording = Wording(
            found=lambda path: f"Pattern /{config.pattern}/ matched in {path}",
            not_found=lambda _: f"Pattern /{config.pattern}/ not found in any file matching '{config.path}'",
        )
        return grade_content(input, found, lambda text: regex.search(text) is not None, wording, self.keyword)

    def default_name(self, config: MatchesConfig) -> str:
        return f"{self.keyword} {describe_grader_value(f'{config.path} {config.pattern}')}"


class FileNotMatches(FileMatches):
    """The negated keyword."""

    keyword = "file-not-matches"
