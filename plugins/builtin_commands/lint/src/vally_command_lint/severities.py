"""Levels that a user chose, and `--strict`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from vally_command_lint.findings import Check, FileReport, Finding, SkillReport

Severity = Literal["error", "warning", "info", "off"]
SEVERITIES: tuple[Severity, ...] = ("off", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Severities:
    """`chosen` maps codes and checks to levels; a code beats the check it belongs to. `strict` comes last."""

    chosen: Mapping[str, Severity] = field(default_factory=dict)
    strict: bool = False

    def apply(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings at their final levels, without those that are off."""
        kept = []
        for finding in findings:
            level = self._level(finding)
            if level != "off":
                kept.append(finding if level == finding.level else replace(finding, level=level))
        return tuple(kept)

    def _level(self, finding: Finding) -> Severity:
        level: Severity = self.chosen.get(finding.code, self.chosen.get(finding.check or "", finding.level))
        return "error" if self.strict and level == "warning" else level

    def check(self, check: Check) -> Check:
        """A check with its findings at their final levels."""
        return replace(check, findings=self.apply(check.findings))

    def skill(self, report: SkillReport) -> SkillReport:
        """A skill with all findings at their final levels."""
        return replace(report, checks=tuple(map(self.check, report.checks)))

    def file(self, report: FileReport) -> FileReport:
        """A file with all findings at their final levels."""
        return replace(report, findings=self.apply(report.findings))
