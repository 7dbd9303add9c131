"""The part of `vally grade` in which plugins work: backend, judges, graders and reporters."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally.cli.backend_choice import choose_backend
from vally.cli.grade_report import GradeReport
from vally.cli.judge_options import judge_cache, judge_effort
from vally.cli.messages import print_error, print_warning, say
from vally.model.jsonio import encode_line, timestamp
from vally.run.report_stream import reporting

if TYPE_CHECKING:
    from vally.cli.backend_choice import BackendChoice
    from vally.cli.context import CliContext
    from vally.cli.grade_reporters import GradeReporters
    from vally.host import PluginHost
    from vally.model.evalspec import EvalSpec, Project
    from vally.model.results import RunSummary
    from vally.run.judges import JudgePool
    from vally.run.redaction import Redactor
    from vally.run.regrading.evals import RegradedEvals
    from vally.run.regrading.recorded import Places
    from vally.run.regrading.work import Assigned, Graded

SHUTDOWN_S = 30
"""How long backend and judges may take to shut down."""


class GradeSession:
    """Grades assigned documents and reports them; to be used once."""

    def __init__(
        self,
        context: CliContext,
        options: Mapping[str, Any],
        *,
        run_id: str,
        project: Project,
        host: PluginHost,
        specs: Sequence[EvalSpec],
        environment_values: Mapping[str, str],
        places: Places,
        warn: Callable[[str, str, str], None],
        fail: Callable[[str, str, str], None],
    ) -> None:
        self._context = context
        self._options = options
        self._run_id = run_id
        self._project = project
        self._host = host
        self._specs = specs
        self._environment_values = environment_values
        self._places = places
        self._warn = warn
        self._fail = fail
        self._output = options["output"]
        self._report = GradeReport(
            context.environ,
            on_stdout=self._output == "text",
            quiet=context.display.quiet,
            verbose=context.display.verbose,
        )
        self._told: set[str] = set()
        self._evals: RegradedEvals
        self._redactor: Redactor
        self._judges: JudgePool
        self._reporters: GradeReporters
        self._failed_before: Callable[[], bool]
        self._code = 1
        self._started = time.monotonic()
        self._started_at = timestamp()

    def run(self, assigned: Sequence[Assigned], failed_before: Callable[[], bool]) -> int:
        """Grade and report; returns the exit code. `failed_before` tells whether some input was an error."""
        from vally.cli.grade_reporters import GradeReporters

        self._make_evals(assigned)
        backend = choose_backend(
            self._context, self._host, self._project, self._options["backend"], self._options["backend_args"]
        )
        if not self._prepare_judges():
            return 1
        self._reporters = GradeReporters(self._host, self._context, self._options, self._project)
        self._failed_before = failed_before
        anyio.run(self._run, backend, assigned)
        return self._code

    def _make_evals(self, assigned: Sequence[Assigned]) -> None:
        from vally.run.plan import PlanOptions
        from vally.run.providers import credential_variables
        from vally.run.redaction import Redactor
        from vally.run.regrading.evals import RegradedEvals

        options = self._options
        plan_options = PlanOptions(
            run_id=self._run_id,
            project_root=self._project.root,
            work_dir=self._context.cwd,
            runs=1,
            threshold=options["threshold"],
            judge_model=options["judge_model"],
            judge_effort=judge_effort(self._context, options),
        )
        self._evals = RegradedEvals(self._specs, assigned, plan_options)
        secrets = {**dict(options["params"]), **dict(options["backend_args"])}
        variables = credential_variables(self._evals.plan)
        self._redactor = Redactor(self._context.environ, variables=variables, parameters=secrets)
        for name, value in self._environment_values.items():
            self._redactor.add(name, value)

    def _prepare_judges(self) -> bool:
        from vally.run.judge_checks import judge_notices, judge_problems
        from vally.run.judges import JudgePool

        cache = judge_cache(self._context, self._options, None, self._redactor)
        self._judges = JudgePool(
            self._host, environ=self._context.environ, cache=cache, context=self._run_context(len(self._evals.items))
        )
        problems = judge_problems(self._evals.plan, self._host, self._judges)
        for problem in problems:
            print_error(problem)
        if not problems:
            for notice in judge_notices(self._evals.plan, self._host, self._judges):
                say(notice)
        return not problems

    async def _run(self, choice: BackendChoice, assigned: Sequence[Assigned]) -> None:
        from vally.cli.event_loop import leave_threads_behind
        from vally.run.signals import received_signals

        leave_threads_behind()
        with anyio.CancelScope() as scope:

            def stop(number: int) -> None:
                self._code = 128 + number
                scope.cancel()

            with received_signals(stop, self._tell_that_it_stops, SHUTDOWN_S):
                await self._grade(choice, assigned)

    def _tell_that_it_stops(self) -> None:
        say("stopping: ending the graders at work (Ctrl-C again to abort)")

    async def _grade(self, choice: BackendChoice, assigned: Sequence[Assigned]) -> None:
        from vally.run.regrading.work import GradingTools, Regrading

        backend = self._host.create(choice.record)
        try:
            await choice.start(backend, self._run_context(len(assigned)))
            tools = GradingTools(
                host=self._host,
                backend=backend,
                judges=self._judges,
                redactor=self._redactor,
                environ=dict(self._context.environ),
                places=self._places,
                workers=self._options["workers"],
                warn=self._warn,
                fail=self._fail,
            )
            async with self._reporters.listening(self._run_id, self._evals.planned, len(assigned)):
                await Regrading(tools, self._evals.items, assigned, self._emit).run()
                await self._finish()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(SHUTDOWN_S):
                for warning in await self._judges.shutdown():
                    print_warning(warning)
                await choice.shut_down(backend)

    async def _finish(self) -> None:
        evals = self._evals.readable()
        duration_ms = round((time.monotonic() - self._started) * 1000)
        summary = self._evals.summary(self._run_id, self._started_at, duration_ms)
        self._code = self._exit_code(summary)
        artifacts = await self._reporters.finish(evals, summary, self._code)
        self._close(summary, artifacts)

    def _run_context(self, items: int) -> Any:
        from vally.run.trial import RunContext

        return RunContext(
            run_id=self._run_id,
            cache_dir=self._context.cache_dir,
            project_root=self._project.root,
            process_env=self._context.environ,
            items=items,
            workers=self._options["workers"],
            on_warning=self._warn_once,
        )

    def _warn_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            print_warning(text)

    async def _emit(self, graded: Graded) -> None:
        from vally.run.regrading.records import graded_line, trial_of

        result = trial_of(graded)
        facts = self._evals.add(graded, result)
        if graded.error is not None:
            say(f"error: {graded.assigned.document.where}: {graded.error}")
        line = b""
        if self._output == "jsonl" or self._reporters.active:
            line = graded_line(graded, result, self._redactor)
        with reporting():
            if self._output == "jsonl":
                _write(line)
            self._report.trial(graded, self._evals.threshold(graded))
        if self._reporters.active:
            item = replace(graded.item, eval_index=facts.eval_index)
            await self._reporters.trial(item, result, line, facts.passed)

    def _exit_code(self, summary: RunSummary) -> int:
        if self._failed_before() or self._evals.has_grader_errors or not summary.totals.trials:
            return 1
        return 1 if self._options["require_pass"] and not summary.passed else 0

    def _close(self, summary: RunSummary, artifacts: Mapping[str, Path]) -> None:
        from vally.cli.eval_json import print_object, summary_object
        from vally.run.recording import redacted_record

        with reporting():
            self._report.evals(summary.evals)
            if self._output == "jsonl":
                _write(encode_line(redacted_record(summary, self._redactor)))
            elif self._output == "json":
                shown = {label.lower(): path.as_posix() for label, path in artifacts.items()}
                record = summary_object(summary, self._code, kind="grade-run", artifacts=shown)
                print_object(self._redactor.value(record))


def _write(line: bytes) -> None:
    """One record on stdout, in one flush."""
    sys.stdout.write(line.decode("utf-8"))
    sys.stdout.flush()
