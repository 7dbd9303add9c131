"""Skills: finding them, and all checks of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vally import VallyError, find_skills
from vally_command_lint.codes import finding
from vally_command_lint.compliance import check_compliance
from vally_command_lint.dependency_scan import check_dependencies
from vally_command_lint.entry_files import Allowed, Domain
from vally_command_lint.findings import Check, SkillReport
from vally_command_lint.orphans import check_orphans, check_size
from vally_command_lint.references import check_references
from vally_command_lint.skill_source import SKILL_FILE, SkillSource
from vally_command_lint.url_scan import check_addresses


def skill_directories(cwd: Path, words: Iterable[str]) -> list[Path]:
    """Skill directories that paths name or hold, each once; raises VallyError for a path that is none of these."""
    found: dict[Path, None] = {}
    for word in words:
        absolute = Path(os.path.abspath(cwd / word))  # noqa: PTH100  # symbolic links keep their names
        if absolute.is_dir():
            found.update(dict.fromkeys(find_skills(absolute)))
        elif absolute.name == SKILL_FILE and absolute.is_file():
            found[absolute.parent] = None
        elif absolute.exists():
            hints = [f"use -e {word}"] if absolute.suffix in (".yaml", ".yml") else []
            raise VallyError(f"{word} is neither a directory nor a {SKILL_FILE}", hints=hints)
        else:
            raise VallyError(f"{word} does not exist")
    return sorted(found, key=lambda directory: directory.as_posix())


@dataclass(frozen=True)
class SkillLinter:
    """Checks skills; without domains or allowed dependencies these scans are off."""

    display: Callable[[Path], str]
    domains: Sequence[Domain] | None = None
    allowed: Sequence[Allowed] | None = None

    def check(self, directories: Sequence[Path]) -> tuple[list[SkillReport], list[SkillSource]]:
        """Reports of the skills in order, and what was read."""
        sources = [SkillSource.read(directory, self.display(directory)) for directory in directories]
        reports = [self._report(source) for source in sources]
        return list(_with_duplicates(reports, sources)), sources

    def _report(self, source: SkillSource) -> SkillReport:
        return SkillReport(name=source.name, path=source.display, checks=tuple(self._checks(source)))

    def _checks(self, source: SkillSource) -> Iterator[Check]:
        yield check_compliance(source)
        yield check_references(source)
        yield check_orphans(source)
        yield check_size(source)
        if self.domains is not None:
            yield check_addresses(source, self.domains)
        if self.allowed is not None:
            yield check_dependencies(source, self.allowed)


def _with_duplicates(reports: Sequence[SkillReport], sources: Sequence[SkillSource]) -> Iterator[SkillReport]:
    first: dict[str, SkillReport] = {}
    for report, source in zip(reports, sources, strict=True):
        other = first.setdefault(report.name, report)
        if other is report:
            yield report
            continue
        line, column = (1, 1) if source.skill is None else source.skill.positions.get("name", (1, 1))
        compliance = report.checks[0]
        duplicate = finding(
            "duplicate-skill-name",
            f"another skill is named '{report.name}': {other.path}",
            check=compliance.id,
            file=source.main_file,
            line=line,
            column=column,
        )
        checks = (replace(compliance, findings=(*compliance.findings, duplicate)), *report.checks[1:])
        yield replace(report, checks=checks)
