"""One invocation of `vally eval`: select, validate, plan, run, and close with the right exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.cli.directories import results_directory, skill_dirs
from vally.cli.machine_output import reserved_stdout
from vally.cli.messages import print_warning, say
from vally.cli.run_choices import RunChoices
from vally.cli.selection import SelectionWords
from vally.cli.spec_selection import SpecSelection
from vally.errors import UsageError
from vally.run.report_stream import reporting

if TYPE_CHECKING:
    from pathlib import Path

    from vally.cli.context import CliContext
    from vally.cli.resumption import Resumption
    from vally.cli.run_session import RunSession
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.run.plan import Plan

DEFAULT_OUTPUT_DIR = "vally-results"


class EvalRun:
    """Carries an invocation from its options to its exit code."""

    def __init__(
        self,
        context: CliContext,
        options: Mapping[str, Any],
        reporter_flags: Mapping[str, Any],
        resumption: Resumption | None = None,
    ) -> None:
        self._context = context
        self._resumption = resumption
        self._options = options
        self._choices = RunChoices.of(options, reporter_flags)
        words = SelectionWords(
            specs=options["specs"], suites=options["suites"], tags=options["tags"], patterns=options["patterns"]
        )
        self._skill_dirs = skill_dirs(context, options["skill_dir"])
        self._nothing_named = not (words.specs or words.suites or words.tags)
        self._selection = SpecSelection(
            context,
            words,
            params=dict(options["params"]),
            has_skill_dir=bool(self._skill_dirs),
            lenient=options["skip_validate"],
            eval_plugin=options["eval_plugin"],
        )

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before the run."""
        with reserved_stdout(self._options["output"] != "text"), contextlib.closing(self._selection):
            return self._execute()

    def _execute(self) -> int:
        from vally.cli.eval_plan import build_plan, option_warnings

        project = self._selection.find_project()
        self._require_source(project)
        host = self._selection.open_host()
        specs = None if host is None else self._selection.load(host)
        if host is None or specs is None:
            return 1
        if not specs and not self._options["allow_empty"]:
            self._selection.print_nothing_selected()
            return 1
        plan = build_plan(self._context, self._options, specs, project, self._skill_dirs)
        self._show_warnings(host)
        for warning in option_warnings(plan, self._options):
            print_warning(warning)
        return self._run(plan, project, host)

    def _require_source(self, project: Project) -> None:
        if self._nothing_named:
            suites = ", ".join(sorted(project.suites)) or "none"
            raise UsageError(
                "nothing selected: give --eval-spec, --suite or --tag",
                hints=[f"suites found: {suites}", "example: vally eval --eval-spec evals/hello/eval.yaml"],
            )

    def _show_warnings(self, host: PluginHost) -> None:
        for warning in host.take_warnings():
            print_warning(warning)

    def _run(self, plan: Plan, project: Project, host: PluginHost) -> int:
        from vally.cli.run_session import RunSession

        session = RunSession(
            self._context,
            self._choices,
            plan=plan,
            project=project,
            host=host,
            output_dir=self._output_dir(project),
            options=self._options,
            diagnostics=self._selection.diagnostics,
            environment_values=self._selection.environment_values,
            suites=self._selection.suite_metadata(),
        )
        if not session.prepare():
            return 1
        self._show_warnings(host)
        if self._options["dry_run"]:
            return self._dry_run(plan, session)
        for name in plan.skipped:
            say(f"{name}: skipped (runs: 0)")
        if not plan.evals:
            return self._nothing_run(plan)
        from vally.cli.eval_json import run_object
        from vally.run.run_output import RunLayout

        layout = None if self._resumption is not None else RunLayout(parent=self._output_dir(project))
        outcome = session.run(layout, resumption=self._resumption)
        return session.finish(outcome, document=lambda code: run_object(outcome, code, session.output))

    def _nothing_run(self, plan: Plan) -> int:
        """Say that there was nothing to do; there is no run directory then."""
        if not plan.skipped and not self._context.display.quiet:
            say("nothing was run: no stimulus is selected")
        if self._options["output"] == "json":
            from vally.cli.eval_json import nothing_object, print_object

            with reporting():
                print_object(nothing_object(plan.options.run_id))
        return 0

    def _output_dir(self, project: Project) -> Path:
        if self._resumption is not None:
            return self._resumption.directory.path.parent
        return results_directory(self._context, project, self._options["output_dir"], DEFAULT_OUTPUT_DIR)

    def _dry_run(self, plan: Plan, session: RunSession) -> int:
        from vally.cli.eval_plan import print_plan

        with reporting():
            print_plan(plan, self._options["output"])
        if plan.evals:
            session.ask_backend()
        return 0
