"""What `vally.lint` calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vally import PluginHost, Project, ValidationReport, VallyError, did_you_mean, find_project
from vally_command_lint.codes import known_names
from vally_command_lint.findings import to_diagnostic
from vally_command_lint.linting import LintOptions, lint
from vally_command_lint.severities import Severities, Severity


def validate(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    whole_project: bool,
    params: Mapping[str, str],
    known_domains: str | Path | None,
    allowed_dependencies: str | Path | None,
    severities: Mapping[str, Severity],
    strict: bool,
    cwd: Path,
    project: Project | None,
    host: PluginHost,
    environ: Mapping[str, str],
) -> ValidationReport:
    """All findings of the checks, in the order of the report; the arguments are those of `vally.lint`."""
    for name in severities:
        if name not in known_names():
            hint = did_you_mean(name, known_names())
            raise VallyError(f"no check or code named '{name}'", hints=(hint,) if hint else ())
    options = LintOptions(
        paths=paths,
        specs=specs,
        whole_project=whole_project,
        params=params,
        known_domains=None if known_domains is None else cwd / known_domains,
        allowed_dependencies=None if allowed_dependencies is None else cwd / allowed_dependencies,
        severities=Severities(severities, strict),
    )
    chosen = project if project is not None else find_project(cwd, cwd)
    report = lint(options, cwd=cwd, project=chosen, host=host, environ=environ)
    if report.is_empty:
        raise VallyError(f"nothing to lint under {', '.join([*paths, *specs]) or cwd.as_posix()}")
    return ValidationReport(report.passed, tuple(map(to_diagnostic, report.all_findings)))
