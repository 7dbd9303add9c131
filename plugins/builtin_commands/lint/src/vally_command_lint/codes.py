"""The codes of this command beside those of the spec layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vally import DIAGNOSTIC_CODES
from vally_command_lint.findings import Finding, Level


@dataclass(frozen=True, slots=True)
class LintCode:
    """One code: its usual level, and what it is about in a few words."""

    level: Level
    title: str


CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "spec-compliance": "rules of the Agent Skills format",
        "valid-refs": "references of SKILL.md to files",
        "orphan-files": "files that nothing mentions",
        "skill-size": "size of the skill's body",
        "url-scan": "addresses of the web",
        "dependency-scan": "dependencies outside the skill",
    }
)
SUB_CHECKS = ("frontmatter", "name-format", "description", "line-count")
LINT_CODES: Mapping[str, LintCode] = MappingProxyType(
    {
        "frontmatter": LintCode("error", "YAML frontmatter is missing or invalid"),
        "name-format": LintCode("error", "the name of a skill breaks a rule"),
        "description": LintCode("error", "the description of a skill breaks a rule"),
        "line-count": LintCode("error", "SKILL.md is too long"),
        "unknown-frontmatter-key": LintCode("warning", "unknown key in the frontmatter"),
        "metadata-not-string": LintCode("info", "metadata value is not a string"),
        "duplicate-skill-name": LintCode("warning", "two skills have the same name"),
        "broken-ref": LintCode("error", "reference to a file that does not exist"),
        "escaping-ref": LintCode("error", "reference to a file outside the skill"),
        "orphan-files": LintCode("info", "file of a skill that nothing mentions"),
        "skill-size": LintCode("info", "the body of a skill is large"),
        "external-domain": LintCode("error", "address of an unknown domain"),
        "http-not-https": LintCode("error", "address without encryption"),
        "script-no-sri": LintCode("error", "script from the web without integrity"),
        "pipe-to-shell": LintCode("error", "download that a shell executes"),
        "unlisted-dependency": LintCode("warning", "dependency that the allow file does not list"),
        "unused-allow-entry": LintCode("info", "entry of the allow file that matches nothing"),
        "cannot-fail": LintCode("warning", "stimulus that cannot fail"),
        "required-and-disallowed": LintCode("warning", "the same thing is required and disallowed"),
        "pattern-matches-any-text": LintCode("warning", "pattern that matches every text"),
        "pattern-never-matches": LintCode("warning", "pattern that matches no text"),
        "unknown-skill-in-grader": LintCode("warning", "grader names a skill that is not offered"),
        "unknown-tool-in-grader": LintCode("warning", "grader names a tool that the agent does not have"),
        "baseline-loads-skills": LintCode("warning", "baseline of an experiment about skills offers skills"),
    }
)


def title_of(code: str) -> str:
    """A few words about any code."""
    own = LINT_CODES.get(code)
    return own.title if own is not None else code.replace("-", " ")


def known_names() -> tuple[str, ...]:
    """Everything that `--severity` takes: checks and codes."""
    return tuple(sorted({*CHECKS, *LINT_CODES, *DIAGNOSTIC_CODES}))


def finding(code: str, message: str, *, level: Level | None = None, **fields: Any) -> Finding:
    """A finding of one of the own codes, at its usual level unless another one is given."""
    return Finding(code=code, level=level or LINT_CODES[code].level, message=message, **fields)
