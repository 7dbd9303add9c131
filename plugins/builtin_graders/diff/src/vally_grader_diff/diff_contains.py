"""`diff-contains` and `diff-not-contains`: the unified diff has, or lacks, a text or a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import model_validator

from vally import (
    Config,
    GraderInput,
    GraderResult,
    NegatedFlag,
    NonEmpty,
    Pattern,
    compile_regex,
    describe_grader_value,
)
from vally_grader_diff.recorded import EVIDENCE, diff_metadata, no_diff


class DiffContainsConfig(Config):
    """Either a regular expression over the diff text, or a literal text."""

    pattern: Pattern | None = None
    value: NonEmpty | None = None
    negate: bool = False

    @model_validator(mode="after")
    def _check_one(self) -> DiffContainsConfig:
        if (self.pattern is None) == (self.value is None):
            raise ValueError("provide exactly one of 'pattern' or 'value'")
        return self

    def evidence(self) -> frozenset[str]:
        """What the run must record for it."""
        return EVIDENCE


class DiffNotContainsConfig(DiffContainsConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True


class DiffContains:
    """Searches the diff, headers included."""

    keyword: ClassVar = "diff-contains"

    def grade(self, input: GraderInput[DiffContainsConfig]) -> GraderResult:
        config = input.config
        test = _test(config)
        if input.diff is None:
            return no_diff(input, self.keyword)
        found = test(input.diff)
        return GraderResult.verdict(
            found != config.negate, _evidence(config, found), name=self.keyword, metadata=diff_metadata(input.diff)
        )

    def default_name(self, config: DiffContainsConfig) -> str:
        return f"{self.keyword} {describe_grader_value(config.value if config.pattern is None else config.pattern)}"


class DiffNotContains(DiffContains):
    """The negated keyword."""

    keyword = "diff-not-contains"


def _test(config: DiffContainsConfig) -> Callable[[str], bool]:
    """The check of a diff; an invalid pattern is reported before any diff is looked for."""
    if config.pattern is None:
        value = config.value or ""
        return lambda diff: value in diff
    regex = compile_regex(config.pattern)
    return lambda diff: regex.search(diff) is not None


def _evidence(config: DiffContainsConfig, found: bool) -> str:
    if config.pattern is None:
        return f"'{config.value}' {'found' if found else 'NOT found'} in workspace diff"
    return f"Pattern /{config.pattern}/ {'found' if found else 'not found'} in workspace diff"
