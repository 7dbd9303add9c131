"""One invocation of `vally lint`: from its options to reports and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from vally import (
    CliContext,
    EvalProviderSpec,
    PluginHost,
    Project,
    UsageError,
    VallyError,
    atomic_write,
    find_project,
    print_diagnostics,
    print_error,
    print_warning,
    use_color,
    write_machine_output,
)
from vally_command_lint.findings import LintReport
from vally_command_lint.github_actions import annotation_lines, append_summary, is_active, wrapped
from vally_command_lint.glyphs import Painter
from vally_command_lint.linting import LintOptions, lint
from vally_command_lint.severities import Severities
from vally_command_lint.text_report import TextReport


class LintSession:
    """Carries an invocation from its options to its exit code."""

    def __init__(self, context: CliContext, options: Mapping[str, Any]) -> None:
        self._context = context
        self._options = options
        self._specs: tuple[str, ...] = (*options["specs"], *options["old_specs"])

    def execute(self) -> int:
        """Check everything and write the reports; returns the exit code. Raises VallyError for what stops it."""
        self._check_usage()
        project = self._project()
        if project is None:
            return 1
        host = self._context.host(project, base=self._base())
        problems = host.problems()
        for problem in problems:
            print_error(problem)
        if problems:
            return 1
        report = self._lint(project, host)
        for warning in host.take_warnings():
            print_warning(warning)
        if report.is_empty and not self._options["allow_empty"]:
            print_error(VallyError(f"nothing to lint under {', '.join(self._where(project))}"))
            return 1
        self._write(report, project)
        return 0 if report.passed else 1

    def _check_usage(self) -> None:
        options = self._options
        if options["old_specs"]:
            print_warning("'--eval' is deprecated, use '--eval-spec'")
        if options["output_file"] and options["output"] == "text":
            raise UsageError("--output-file needs --output json or --output sarif")
        if options["eval_plugin"] and not self._specs:
            raise UsageError("--eval-plugin needs --eval-spec")

    def _base(self) -> Path | None:
        """The directory of the first spec."""
        if not self._specs:
            return None
        first = self._context.cwd / self._specs[0]
        return first if first.is_dir() else first.parent if first.parent.is_dir() else self._context.cwd

    def _project(self) -> Project | None:
        """The project; None when its file is broken, as is told here, or in the report with --all."""
        context = self._context
        project = find_project(self._base() or context.cwd, context.cwd, context.config_path, context.no_config)
        broken = any(item.level == "error" for item in project.diagnostics)
        if broken and not self._options["whole_project"]:
            print_diagnostics(project.diagnostics)
            return None
        return project

    def _provider(self, project: Project, host: PluginHost) -> EvalProviderSpec | None:
        given, cwd = self._options["eval_plugin"], self._context.cwd
        named: str | None = given or project.eval_provider
        if named is None:
            return None
        bases = (self._base() or cwd, cwd) if given else (project.root,)
        record = host.resolve_one("eval-provider", named, bases=bases)
        assert isinstance(record, EvalProviderSpec)
        return record

    def _lint(self, project: Project, host: PluginHost) -> LintReport:
        options, cwd = self._options, self._context.cwd
        domains, allowed = options["known_domains"], options["allowed_external_deps"]
        chosen = LintOptions(
            paths=options["paths"],
            specs=self._specs,
            whole_project=options["whole_project"],
            params=dict(options["params"]),
            known_domains=cwd / domains if domains else None,
            allowed_dependencies=cwd / allowed if allowed else None,
            severities=Severities(dict(options["severities"]), options["strict"]),
        )
        return lint(
            chosen,
            cwd=cwd,
            project=project,
            host=host,
            environ=self._context.environ,
            provider=self._provider(project, host),
        )

    def _where(self, project: Project) -> list[str]:
        named = [*self._options["paths"], *self._specs]
        if self._options["whole_project"]:
            named.append(project.root.as_posix())
        return named or ["."]

    def _write(self, report: LintReport, project: Project) -> None:
        output, file = self._options["output"], self._options["output_file"]
        if output != "text":
            machine = self._machine(report, project)
            if file is None:
                write_machine_output(machine)
            else:
                self._save(file, machine)
        self._show(report, sys.stderr if output != "text" and file is None else sys.stdout)
        self._tell_github(report, project)

    def _machine(self, report: LintReport, project: Project) -> str:
        from vally_command_lint.json_report import json_report
        from vally_command_lint.sarif_report import sarif_report

        if self._options["output"] == "json":
            document = json_report(report, passed=report.passed)
        else:
            document = sarif_report(report, root=project.root, cwd=self._context.cwd)
        # A name on disk that is not UTF-8 must not make the report unreadable.
        text = json.dumps(document, ensure_ascii=False, indent=2)
        return text.encode("utf-8", "replace").decode() + "\n"

    def _save(self, file: str, text: str) -> None:
        try:
            atomic_write(self._context.cwd / file, text.encode(), is_named=True)
        except OSError as error:
            raise VallyError(f"cannot write {file}: {(error.strerror or str(error)).lower()}") from None

    def _show(self, report: LintReport, stream: Any) -> None:
        context = self._context
        painter = Painter.of(stream, color=use_color(context.display.color, context.environ, stream))
        shown = TextReport(painter, verbose=context.display.verbose, quiet=context.display.quiet)
        text = "\n".join(shown.lines(report))
        text = f"{text.encode('utf-8', 'replace').decode()}\n" if text else ""
        stream.write(wrapped(text) if is_active(context.environ) else text)
        stream.flush()

    def _tell_github(self, report: LintReport, project: Project) -> None:
        environ = self._context.environ
        if not is_active(environ):
            return
        workspace = environ.get("GITHUB_WORKSPACE")
        for line in annotation_lines(report, root=project.root, workspace=workspace):
            click.echo(line.encode("utf-8", "replace").decode(), err=True)
        summary = environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            problem = append_summary(report, summary, passed=report.passed)
            if problem is not None:
                print_warning(f"step summary not written: {problem}")
