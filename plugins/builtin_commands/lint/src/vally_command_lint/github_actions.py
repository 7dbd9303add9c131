"""What GitHub Actions shows: annotations, the step summary, and reports whose text cannot command it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vally import append_step_summary, markdown_cell, report_block, workflow_command, workflow_path
from vally_command_lint.findings import LEVELS, FileReport, LintReport, SkillReport

MAX_PER_LEVEL = 10
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def is_active(environ: Mapping[str, str]) -> bool:
    """Whether a workflow runs the program."""
    return environ.get("GITHUB_ACTIONS") == "true"


def wrapped(text: str) -> str:
    """A block of text in which no workflow command is obeyed."""
    return report_block(text, {"GITHUB_ACTIONS": "true"})


def annotation_lines(report: LintReport, *, root: Path, workspace: str | None) -> Iterator[str]:
    """At most ten lines per level."""
    for level in LEVELS:
        found = [item for item in report.all_findings if item.level == level]
        for item in found[:MAX_PER_LEVEL]:
            text = f"{item.sentence}\n{item.hint}" if item.hint else item.sentence
            file = None if item.file is None else workflow_path(root / item.file, workspace)
            line = None if file is None else item.line
            yield workflow_command(_COMMANDS[level], text, file=file, line=line, title=item.code)


def append_summary(report: LintReport, path: str, *, passed: bool) -> str | None:
    """Append the tables to the step summary; returns what went wrong, or None."""
    return append_step_summary(path, "\n".join(_summary(report, passed)) + "\n")


def _summary(report: LintReport, passed: bool) -> Iterator[str]:
    counts = ", ".join(f"{report.count(level)} {level}s" for level in LEVELS)
    rows: list[tuple[str, str, SkillReport | FileReport]] = [("skill", item.name, item) for item in report.skills]
    rows += [(item.kind, item.path, item) for item in (*report.project, *report.evals)]
    verdict = "failed" if not passed else "passed" if rows else "nothing to check"
    yield f"## vally lint: {verdict}"
    yield ""
    yield counts
    if rows:
        yield ""
        yield "| what | name | result | errors | warnings |"
        yield "|---|---|---|---|---|"
        for what, name, item in rows:
            yield _row(what, name, item)
    yield ""


def _row(what: str, name: str, item: SkillReport | FileReport) -> str:
    errors, warnings = (sum(found.level == level for found in item.findings) for level in ("error", "warning"))
    return f"| {what} | {markdown_cell(name)} | {'✔ pass' if item.passed else '✘ fail'} | {errors} | {warnings} |"
