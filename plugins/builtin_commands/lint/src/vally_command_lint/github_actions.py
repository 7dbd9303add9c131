"""What GitHub Actions shows: annotations, the step summary, and reports whose text cannot command it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from vally import sanitise
from vally_command_lint.findings import LEVELS, FileReport, Finding, LintReport, SkillReport

MAX_PER_LEVEL = 10
MAX_SUMMARY_BYTES = 900 * 1024
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def is_active(environ: Mapping[str, str]) -> bool:
    """Whether a workflow runs the program."""
    return environ.get("GITHUB_ACTIONS") == "true"


def wrapped(text: str) -> str:
    """A block of text in which no workflow command is obeyed."""
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text}::{token}::\n"


def annotation_lines(report: LintReport, *, root: Path, workspace: str | None) -> Iterator[str]:
    """At most ten lines per level."""
    for level in LEVELS:
        found = [item for item in report.all_findings if item.level == level]
        for item in found[:MAX_PER_LEVEL]:
            properties = {**_place(item, root, workspace), "title": item.code}
            listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
            text = f"{item.sentence}\n{item.hint}" if item.hint else item.sentence
            yield f"::{_COMMANDS[level]} {listed}::{_data(text)}"


def _place(item: Finding, root: Path, workspace: str | None) -> dict[str, str]:
    if item.file is None:
        return {}
    path = root / item.file
    if workspace and path.is_relative_to(workspace):
        path = path.relative_to(workspace)
    line = {} if item.line is None else {"line": str(item.line)}
    return {"file": path.as_posix(), **line}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def append_summary(report: LintReport, path: str, *, passed: bool) -> str | None:
    """Append the tables to the step summary; returns what went wrong, or None."""
    text = "\n".join(_summary(report, passed)) + "\n"
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_SUMMARY_BYTES:
        kept = data[:MAX_SUMMARY_BYTES].rsplit(b"\n", 1)[0]
        data = kept + b"\n\nThe rest does not fit here.\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _summary(report: LintReport, passed: bool) -> Iterator[str]:
    counts = ", ".join(f"{report.count(level)} {level}s" for level in LEVELS)
    yield f"## vally lint: {'passed' if passed else 'failed'}"
    yield ""
    yield counts
    rows: list[tuple[str, str, SkillReport | FileReport]] = [("skill", item.name, item) for item in report.skills]
    rows += [(item.kind, item.path, item) for item in (*report.project, *report.evals)]
    if rows:
        yield ""
        yield "| what | name | result | errors | warnings |"
        yield "|---|---|---|---|---|"
        for what, name, item in rows:
            yield _row(what, name, item)
    yield ""


def _row(what: str, name: str, item: SkillReport | FileReport) -> str:
    errors, warnings = (sum(found.level == level for found in item.findings) for level in ("error", "warning"))
    return f"| {what} | {_cell(name)} | {'✔ pass' if item.passed else '✘ fail'} | {errors} | {warnings} |"


def _cell(text: str) -> str:
    shown = " ".join(sanitise(text).split())
    for character in "\\`*_[]<>|":
        shown = shown.replace(character, f"\\{character}")
    return shown
