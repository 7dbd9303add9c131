"""`file-exists` and `file-not-exists`: a path or glob matches something, or nothing."""

from __future__ import annotations

from typing import ClassVar

from vally import GraderInput, GraderResult, describe_grader_value, join_capped
from vally_grader_files.config import ExistsConfig
from vally_grader_files.content import matches_metadata


class FileExists:
    """Looks for the path; directories and links of any kind count."""

    keyword: ClassVar = "file-exists"

    def grade(self, input: GraderInput[ExistsConfig]) -> GraderResult:
        config = input.config
        matches = input.files.resolve(config.path)
        found = bool(matches.paths)
        shown = join_capped(matches.paths, len(matches.paths))
        evidence = (
            f"Files matching '{config.path}' found: {shown}" if found else f"No files matching '{config.path}' found"
        )
        return GraderResult.verdict(
            found != config.negate, evidence, name=self.keyword, metadata=matches_metadata(matches)
        )

    def default_name(self, config: ExistsConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.path)}"


class FileNotExists(FileExists):
    """The negated keyword."""

    keyword = "file-not-exists"
