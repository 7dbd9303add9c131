"""One invocation of `vally eval`: select, validate, plan, run, and close with the right exit code."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.cli.clean_names import with_clean_names
from vally.cli.directories import skill_dirs
from vally.cli.display import progress_style, use_color
from vally.cli.machine_output import reserved_stdout
from vally.cli.messages import print_diagnostics, print_error, print_hints, print_warning, say
from vally.cli.selection import (
    SelectionWords,
    candidate_files,
    chosen_suites,
    describe,
    select_stimuli,
    suite_metadata,
    tag_keys,
)
from vally.errors import SpecError, UsageError
from vally.run.report_stream import reporting

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic, EvalSpec, Project
    from vally.run.plan import Plan
    from vally.run.redaction import Redactor
    from vally.run.reporting import RunOptions

SEMANTIC_STEP = "semantic"


class EvalRun:
    """Carries an invocation from its options to its exit code."""

    def __init__(self, context: CliContext, options: Mapping[str, Any], reporter_flags: Mapping[str, Any]) -> None:
        self._context = context
        self._options = options
        self._flags = reporter_flags
        self._words = SelectionWords(
            specs=options["specs"], suites=options["suites"], tags=options["tags"], patterns=options["patterns"]
        )
        self._diagnostics: list[Diagnostic] = []
        self._environment_values: dict[str, str] = {}
        self._skill_dirs = skill_dirs(context, options["skill_dir"])

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before the run."""
        with reserved_stdout(self._options["output"] != "text"):
            return self._execute()

    def _execute(self) -> int:
        project = self._project()
        self._require_source(project)
        host = self._context.host(project, base=self._base())
        problems = host.problems()
        for problem in problems:
            print_error(problem)
        if problems:
            return 1
        specs = self._specs(project, host)
        if specs is None:
            return 1
        selected = self._selected(specs, project)
        if not selected:
            return self._nothing(specs)
        from vally.cli.eval_plan import build_plan, option_warnings

        plan = build_plan(self._context, self._options, selected, project, self._skill_dirs)
        if plan is None:
            return 1
        self._show_warnings(host)
        for warning in option_warnings(plan, self._options):
            print_warning(warning)
        return self._run(plan, project, host)

    def _project(self) -> Project:
        from vally.spec import find_project

        context = self._context
        start = self._base() or context.cwd
        project = find_project(start, context.cwd, context.config_path, context.no_config)
        errors = [item for item in project.diagnostics if item.level == "error"]
        self._diagnostics += project.diagnostics
        if errors:
            raise SpecError("the project file cannot be used", diagnostics=project.diagnostics)
        return project

    def _base(self) -> Path | None:
        if not self._words.specs:
            return None
        first = self._context.cwd / self._words.specs[0]
        return first if first.is_dir() else first.parent if first.parent.is_dir() else self._context.cwd

    def _require_source(self, project: Project) -> None:
        if self._words.specs or self._words.suites or self._words.tags:
            return
        suites = ", ".join(sorted(project.suites)) or "none"
        raise UsageError(
            "nothing selected: give --eval-spec, --suite or --tag",
            hints=[f"suites found: {suites}", "example: vally eval --eval-spec evals/hello/eval.yaml"],
        )

    def _specs(self, project: Project, host: PluginHost) -> list[tuple[Path, EvalSpec]] | None:
        from vally.spec import read_eval_spec

        found = candidate_files(self._words, project, self._context.cwd)
        self._diagnostics += found.diagnostics
        self._suites_of = found.suites_of
        params = dict(self._options["params"])
        used: set[str] = set()
        specs: list[tuple[Path, EvalSpec]] = []
        for path in found.paths:
            loaded = read_eval_spec(
                path,
                params=params,
                project=project,
                host=host,
                environ=self._context.environ,
                skill_dirs=bool(self._skill_dirs),
            )
            self._environment_values |= loaded.environment_values
            used |= loaded.used_params
            self._diagnostics += self._softened(loaded.spec, loaded.diagnostics)
            if loaded.spec is not None:
                specs.append((path, with_clean_names(loaded.spec, self._redactor())))
        self._unused_parameters(params, used)
        print_diagnostics(self._diagnostics)
        return None if any(item.level == "error" for item in self._diagnostics) else specs

    def _redactor(self) -> Redactor:
        from vally.run.redaction import Redactor

        redactor = Redactor(self._context.environ, parameters=dict(self._options["params"]))
        for name, value in self._environment_values.items():
            redactor.add(name, value)
        return redactor

    def _softened(self, spec: EvalSpec | None, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        # Only a spec that could be built may run in spite of its errors.
        if not self._options["skip_validate"] or spec is None:
            return list(diagnostics)
        return [replace(item, level="warning") if item.level == "error" else item for item in diagnostics]

    def _unused_parameters(self, params: Mapping[str, str], used: set[str]) -> None:
        from vally.model.evalspec import Diagnostic

        for name in params:
            if name not in used:
                self._diagnostics.append(
                    Diagnostic(
                        code="unused-parameter", level="warning", message=f"--param {name} is not used by any file"
                    )
                )

    def _selected(self, specs: Sequence[tuple[Path, EvalSpec]], project: Project) -> list[EvalSpec]:
        hits: dict[str, int] = {}
        by_suite = bool(chosen_suites(project, self._words.suites))
        selected = []
        for path, spec in specs:
            kept = select_stimuli(spec, self._words, self._suites_of.get(path, []) if by_suite else None, hits)
            if kept.stimuli:
                selected.append(kept)
            elif self._context.display.verbose:
                say(f"{spec.display_path}: no stimulus selected")
        for pattern in self._words.patterns:
            if not hits.get(pattern):
                print_warning(f"--stimulus '{pattern}' matches nothing")
        return selected

    def _nothing(self, specs: Sequence[tuple[Path, EvalSpec]]) -> int:
        if self._options["allow_empty"]:
            return 0
        keys = tag_keys(spec for _, spec in specs)
        say("error: no stimulus matches")
        print_hints([*describe(self._words), f"tag keys: {', '.join(keys) or 'none'}"])
        return 1

    def _show_warnings(self, host: PluginHost) -> None:
        for warning in host.take_warnings():
            print_warning(warning)

    def _run(self, plan: Plan, project: Project, host: PluginHost) -> int:
        from vally.cli.eval_plan import print_plan
        from vally.cli.eval_session import EvalSession

        session = EvalSession(
            self._context,
            self._options,
            plan=plan,
            project=project,
            host=host,
            reporting=self._reporting(),
            diagnostics=tuple(self._diagnostics),
            environment_values=self._environment_values,
            suites=suite_metadata(chosen_suites(project, self._words.suites)),
        )
        if not session.prepare():
            return 1
        self._show_warnings(host)
        if self._options["dry_run"]:
            with reporting():
                print_plan(plan, self._options["output"])
            return 0
        if not plan.evals:
            for name in plan.skipped:
                say(f"{name}: skipped (runs: 0)")
            return 0
        return session.run()

    def _reporting(self) -> RunOptions:
        from vally.run.reporting import RunOptions

        display, environ = self._context.display, self._context.environ
        return RunOptions(
            output=self._options["output"],
            verbose=display.verbose,
            quiet=display.quiet,
            progress=progress_style(display, environ, sys.stderr),
            color_stdout=use_color(display.color, environ, sys.stdout),
            color_stderr=use_color(display.color, environ, sys.stderr),
            skip_grade=self._options["skip_grade"],
            require_pass=self._options["require_pass"],
            flags=self._flags,
        )


def new_run_id() -> str:
    """A fresh id for a run without `--run-id`."""
    return str(uuid.uuid4())
