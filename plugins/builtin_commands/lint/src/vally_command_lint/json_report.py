"""The report as one JSON object."""

from __future__ import annotations

from typing import Any

from vally_command_lint.findings import Check, FileReport, Finding, LintReport, SkillReport

_KEYS = ("code", "level", "message", "file", "line", "column", "pointer", "hint")


def json_report(report: LintReport, *, passed: bool) -> dict[str, Any]:
    """The object; `passed` is what the exit code says. `findings` are those about no file that was checked."""
    return {
        "type": "lint-report",
        "version": 1,
        "passed": passed,
        "strict": report.strict,
        "skills": [_skill(skill) for skill in report.skills],
        "evals": [_file(item) for item in report.evals],
        "project": [_file(item) for item in report.project],
        "findings": [_finding(item) for item in report.findings],
        "totals": {
            "skills": len(report.skills),
            "skillsPassed": sum(skill.passed for skill in report.skills),
            "evals": len(report.evals),
            "evalsPassed": sum(item.passed for item in report.evals),
            "errors": report.count("error"),
            "warnings": report.count("warning"),
            "infos": report.count("info"),
        },
    }


def _skill(skill: SkillReport) -> dict[str, Any]:
    checks = [_check(check) for check in skill.checks]
    return {"name": skill.name, "path": skill.path, "passed": skill.passed, "checks": checks}


def _check(check: Check) -> dict[str, Any]:
    findings = [_finding(item) for item in check.findings]
    return {"id": check.id, "passed": check.passed, "summary": check.summary, "findings": findings}


def _file(report: FileReport) -> dict[str, Any]:
    return {"path": report.path, "passed": report.passed, "findings": [_finding(item) for item in report.findings]}


def _finding(item: Finding) -> dict[str, Any]:
    return {key: getattr(item, key) for key in _KEYS}
