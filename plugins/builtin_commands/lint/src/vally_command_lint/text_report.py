"""The report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vally import Related, strip_controls
from vally_command_lint.findings import Check, FileReport, Finding, LintReport, SkillReport, worst
from vally_command_lint.glyphs import CHECK_GLYPHS, FAIL, FINDING_GLYPHS, PASS, Painter

_SHOWN_WHEN_PASSED = frozenset({"spec-compliance", "valid-refs", "url-scan", "dependency-scan"})
_HEADINGS = {"eval": "Eval", "project": "Project", "experiment": "Experiment"}


def _one_line(text: str) -> str:
    return " ".join(strip_controls(text).split())


@dataclass(frozen=True, slots=True)
class TextReport:
    """Lines of a report; `verbose` adds what passed, `quiet` leaves out everything but findings and totals."""

    painter: Painter
    verbose: bool = False
    quiet: bool = False

    def lines(self, report: LintReport) -> Iterator[str]:
        """The whole report."""
        for finding in report.findings:
            yield self._flat(finding, None)
        if "skills" in report.looked_for:
            yield from self._skills(report.skills)
        yield from self._files(report.project, "project files")
        if "evals" in report.looked_for:
            yield from self._files(report.evals, "eval specs")

    def _skills(self, skills: Sequence[SkillReport]) -> Iterator[str]:
        names = f": {', '.join(_one_line(skill.name) for skill in skills)}" if skills else ""
        if not self.quiet:
            yield f"Found {len(skills)} skill(s){names}"
        for skill in skills:
            yield from self._skill(skill)
        if skills:
            yield from self._gap()
            yield f"{sum(skill.passed for skill in skills)}/{len(skills)} skills passed"

    def _gap(self) -> Iterator[str]:
        if not self.quiet:
            yield ""

    def _skill(self, skill: SkillReport) -> Iterator[str]:
        if self.quiet and not any(skill.findings):
            return
        yield from self._gap()
        yield f"{self.painter.glyph(PASS if skill.passed else FAIL)} {_one_line(skill.name)}"
        for check in skill.checks:
            if check.findings or (not self.quiet and (self.verbose or check.id in _SHOWN_WHEN_PASSED)):
                yield from self._check(check)

    def _check(self, check: Check) -> Iterator[str]:
        summary = f" ({check.summary})" if check.summary else ""
        yield f"  {self.painter.glyph(CHECK_GLYPHS[worst(check.findings)])} {check.id}{summary}"
        if self.verbose:
            yield from (f"    {self.painter.glyph(PASS)} {_one_line(line)}" for line in check.evidence)
        for finding in check.findings:
            glyph = self.painter.glyph(FINDING_GLYPHS[finding.level])
            if finding.brief is not None:
                yield f"    {glyph} {_one_line(finding.brief)}"
            else:
                place = f" ({_place(finding)})" if finding.file else ""
                yield f"    {glyph} {finding.code}: {_said(finding)}{place}"

    def _files(self, reports: Sequence[FileReport], noun: str) -> Iterator[str]:
        for report in reports:
            if not self.quiet or report.findings:
                yield from self._gap()
                yield f"{_HEADINGS[report.kind]}: {_one_line(report.path)}"
                yield from self._file(report)
        if reports:
            yield from self._gap()
            yield f"{sum(report.passed for report in reports)}/{len(reports)} {noun} passed"

    def _file(self, report: FileReport) -> Iterator[str]:
        for finding in report.findings:
            yield f"  {self._flat(finding, report.path)}"
        errors, warnings = (sum(item.level == level for item in report.findings) for level in ("error", "warning"))
        if errors:
            yield f"  {errors} error(s), {warnings} warning(s)"
        elif warnings:
            yield f"  {warnings} warning(s)"
        elif not self.quiet:
            yield f"  {self.painter.glyph(PASS)} no problems"

    def _flat(self, finding: Finding, path: str | None) -> str:
        """One line: level, code, place in words, message, hint, position."""
        glyph = self.painter.glyph(CHECK_GLYPHS[finding.level])
        places = []
        if finding.file is not None and finding.file != path:
            places.append(_place(finding))
        elif finding.line is not None:
            places.append(f"line {finding.line}")
        places += [_place(other) for other in finding.related if other.file not in (None, finding.file)]
        place = f" ({', '.join(places)})" if places else ""
        return f"{glyph} {finding.level} [{finding.code}] {_said(finding, in_words=True)}{place}"


def _said(finding: Finding, *, in_words: bool = False) -> str:
    hint = f", {finding.hint}" if finding.hint else ""
    return _one_line(f"{finding.sentence if in_words else finding.message}{hint}")


def _place(finding: Finding | Related) -> str:
    line = f":{finding.line}" if finding.line is not None else ""
    return _one_line(f"{finding.file}{line}")
