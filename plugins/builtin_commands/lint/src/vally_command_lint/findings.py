"""What a check found, and the report that all checks make together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from vally import Diagnostic, Related

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding. `file` is as displayed; line and column are 1-based, None when unknown.

    `check` is the skill check it belongs to, `context` the place in words, `brief` what stands for the message where
    the check is named above it; `related` are other places it speaks of.
    """

    code: str
    level: Level
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    pointer: str | None = None
    hint: str | None = None
    context: str | None = None
    check: str | None = None
    brief: str | None = None
    related: tuple[Related, ...] = ()

    @property
    def sentence(self) -> str:
        """Place in words and message."""
        return f"{self.context}: {self.message}" if self.context else self.message


def from_diagnostic(item: Diagnostic) -> Finding:
    """The finding that a diagnostic of the spec layer is."""
    return Finding(**_common(item))


def to_diagnostic(item: Finding) -> Diagnostic:
    """The diagnostic that a finding is for programs."""
    return Diagnostic(**_common(item))


def _common(item: Diagnostic | Finding) -> dict[str, Any]:
    names = ("code", "level", "message", "file", "line", "column", "pointer", "hint", "context", "related")
    return {name: getattr(item, name) for name in names}


def worst(findings: Iterable[Finding]) -> Level | None:
    """The gravest level, or None."""
    levels = {finding.level for finding in findings}
    return next((level for level in LEVELS if level in levels), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of a skill: its findings, what it says in brackets, and lines of evidence for what passed."""

    id: str
    findings: tuple[Finding, ...] = ()
    summary: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is an error."""
        return worst(self.findings) != "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillReport:
    """All checks of one skill; `path` is the directory as displayed."""

    name: str
    path: str
    checks: tuple[Check, ...]

    @property
    def findings(self) -> Iterator[Finding]:
        """Those of all checks, in order."""
        return (finding for check in self.checks for finding in check.findings)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What is wrong with one file; `kind` is `eval`, `project` or `experiment`."""

    kind: Literal["eval", "project", "experiment"]
    path: str
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is an error."""
        return worst(self.findings) != "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Everything that was checked. `findings` are those about no file, such as an option without effect.

    `looked_for` has the kinds that were asked for, of `skills`, `evals` and `project`.
    """

    skills: tuple[SkillReport, ...] = ()
    evals: tuple[FileReport, ...] = ()
    project: tuple[FileReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    strict: bool = False
    looked_for: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to check."""
        return not (self.skills or self.evals or self.project)

    @property
    def all_findings(self) -> Iterator[Finding]:
        """Every finding in the order of the report."""
        yield from self.findings
        reports: tuple[SkillReport | FileReport, ...] = (*self.project, *self.skills, *self.evals)
        for report in reports:
            yield from report.findings

    def count(self, level: Level) -> int:
        """Number of findings of a level."""
        return sum(finding.level == level for finding in self.all_findings)

    @property
    def passed(self) -> bool:
        """Whether nothing is an error; warnings of a strict report are errors already."""
        return worst(self.all_findings) != "error"
