"""One run of a command: plugins made ready, the directory made, trials run, and the closing lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.cli.backend_choice import BackendChoice, choose_backend
from vally.cli.closing import artifact_lines, exit_code, print_closing
from vally.cli.messages import print_diagnostics, print_error, print_warning, say
from vally.run.report_stream import reporting

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.cli.resumption import Resumption
    from vally.cli.run_choices import RunChoices
    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic, Project
    from vally.run.engine import Engine
    from vally.run.plan import Plan
    from vally.run.preparation import Preparation, ReadyExecutor
    from vally.run.redaction import Redactor
    from vally.run.resuming import Kept
    from vally.run.run_dir import ManifestFacts
    from vally.run.run_output import RunLayout, RunOutput
    from vally.run.run_settings import RunOutcome, RunSettings
    from vally.run.stopping import Stopping


class RunSession:
    """Runs one plan: `prepare`, then `run`, then `finish`.

    `kind` is what records call the run. `options` are the parameters of the command, for `run-manifest.json`; without
    them the run has none and cannot be continued. `executors` are executors of the command itself, by the names the
    plan uses. `reporters` are objects that get the events of the run beside the reporters of plugins, first and in
    order; they need only the methods they want. `environment_values` are process variables that placeholders used.
    """

    def __init__(
        self,
        context: CliContext,
        choices: RunChoices,
        *,
        plan: Plan,
        project: Project,
        host: PluginHost,
        kind: str = "eval",
        output_dir: Path,
        options: Mapping[str, Any] | None = None,
        diagnostics: Sequence[Diagnostic] = (),
        environment_values: Mapping[str, str] | None = None,
        suites: Mapping[str, Mapping[str, object]] | None = None,
        executors: Mapping[str, ReadyExecutor] | None = None,
        reporters: Sequence[object] = (),
    ) -> None:
        self._context = context
        self._choices = choices
        self._plan = plan
        self._project = project
        self._host = host
        self._kind = kind
        self._output_dir = output_dir
        self._options = options
        self._reporting = choices.reporting(context)
        self._diagnostics = tuple(diagnostics)
        self._environment_values = environment_values or {}
        self._suites = suites or {}
        self._executors = dict(executors or {})
        self._reporters = reporters
        self._records = True
        self._backend: BackendChoice
        self._ready: Preparation
        self.output: RunOutput
        """The directory of the run, once it was made."""

    def prepare(self) -> bool:
        """Make executors and backend ready and check every need; prints what is wrong and returns whether to go on.

        Raises `UsageError` for settings that the backend does not have.
        """
        from vally.cli.judge_options import judge_cache
        from vally.run.judge_checks import judge_problems
        from vally.run.judges import JudgePool
        from vally.run.preparation import prepare
        from vally.run.provider_checks import credential_problems, exposed_credentials

        choices = self._choices
        self._backend = choose_backend(self._context, self._host, self._project, choices.backend, choices.backend_args)
        self._ready = prepare(
            self._plan,
            self._host,
            backend_isolates=self._backend.record.isolates,
            backend=self._backend.record.name,
            skip_grade=choices.skip_grade,
            executors=self._executors,
            context=self._run_context(),
        )
        environ, network = self._context.environ, self._backend.agent_network
        self._ready.diagnostics += credential_problems(self._plan, self._ready, environ)
        self._ready.diagnostics += exposed_credentials(self._plan, self._ready, environ, network)
        print_diagnostics(self._ready.diagnostics)
        cached = {"judge_cache": choices.judge_cache, "judge_cache_dir": choices.judge_cache_dir}
        cache = judge_cache(self._context, cached, self._output_dir, self.redactor())
        self._judges = JudgePool(self._host, environ=environ, cache=cache, context=self._run_context())
        problems = judge_problems(self._plan, self._host, self._judges, skip_grade=choices.skip_grade)
        for problem in problems:
            print_error(problem)
        return not problems and not any(item.level == "error" for item in self._ready.diagnostics)

    def ask_backend(self) -> None:
        """Print what the backend tells of a run that is only planned, and ask executors and judges if that was wanted.

        Raises `VallyError` when it could not start.
        """
        if self._choices.preflight:
            import anyio

            anyio.run(self._preflight)
        self._backend.print_answer(self._host, self._run_context(), quiet=self._context.display.quiet)

    def run(
        self,
        layout: RunLayout | None = None,
        *,
        resumption: Resumption | None = None,
        on_directory: Callable[[RunOutput], None] | None = None,
    ) -> RunOutcome:
        """Run the plan. Raises `VallyError` when it could not start; nothing was written then.

        The records go to the directory of `layout`; without one they go to a temporary directory that is removed, and
        only the reporters of the command hear of the run. `resumption` is a run that is continued instead.
        `on_directory` is called once the directory exists.
        """
        import anyio

        from vally.cli.event_loop import spared_collector

        if resumption is not None:
            resumption.check(self._plan, self._manifest({}))
        if not self._choices.skip_grade:
            from vally.run.judge_checks import judge_notices

            for notice in judge_notices(self._plan, self._host, self._judges):
                say(notice)
        if layout is None and resumption is None:
            return self._run_unrecorded()
        with spared_collector():
            return anyio.run(self._run, layout, resumption, on_directory)

    def _run_unrecorded(self) -> RunOutcome:
        import anyio

        from vally.run.run_output import RunLayout
        from vally.run.unrecorded import unrecorded_directory

        self._records = False
        with unrecorded_directory() as directory:
            return anyio.run(self._run, RunLayout(parent=directory), None, None)

    async def _run(
        self,
        layout: RunLayout | None,
        resumption: Resumption | None,
        on_directory: Callable[[RunOutput], None] | None,
    ) -> RunOutcome:
        from vally.cli.event_loop import leave_threads_behind
        from vally.run.stopping import Stopping

        leave_threads_behind()
        if self._choices.preflight:
            await self._preflight()
        backend = self._host.create(self._backend.record)
        try:
            await self._backend.start(backend, self._run_context())
            stopping = Stopping(say, self._choices.shutdown_timeout / 1000)
            # From the directory on a signal must leave a closed run, so it waits for what is being written.
            with stopping.signals():
                kept = self._open(layout, resumption, getattr(backend, "facts", None) or {})
                try:
                    for warning in self.output.warnings:
                        print_warning(warning)
                    if on_directory is not None:
                        on_directory(self.output)
                    return await self._engine(backend, kept, stopping).run()
                finally:
                    self.output.close()
        except BaseException:
            await self._backend.abandon(backend, self._choices.shutdown_timeout / 1000)
            raise

    async def _preflight(self) -> None:
        from vally.run.preflight import preflight

        await preflight(self._plan, self._host, self._ready, self._judges, skip_grade=self._choices.skip_grade)

    def _open(self, layout: RunLayout | None, resumption: Resumption | None, backend: Mapping[str, str]) -> Kept | None:
        """Make the run directory, or take that of the run which is continued; returns what is kept of it."""
        from vally.run.run_output import RunOutput, display_path

        display = display_path(self._project.root, self._context.cwd)
        if resumption is not None:
            self.output, kept = resumption.open(self._plan, self.redactor(), display)
            return kept
        assert layout is not None
        parts = dict.fromkeys(evaluation.part for evaluation in self._plan.evals)
        self.output = RunOutput.create(layout, self.redactor(), datetime.now(UTC), display, parts)
        if self._options is not None and self._records:
            try:
                self.output.directory.write_manifest(self._manifest(backend))
            except OSError as error:
                print_warning(f"run-manifest.json not written: {error.strerror or error}")
        return None

    def _manifest(self, backend: Mapping[str, str]) -> ManifestFacts:
        from vally.cli.run_manifest import manifest_facts, stored_options

        return manifest_facts(
            self._plan,
            self._project,
            self._host,
            kind=self._kind,
            stored=stored_options(self._context, self._options or {}, self._choices.reporter_flags),
            params=dict(self._choices.params),
            backend_args=self._backend.fixed_args,
            backend=backend,
        )

    def _engine(self, backend: Any, kept: Kept | None, stopping: Stopping) -> Engine:
        from vally.run.engine import Engine
        from vally.run.reporters import ReporterBoard, active_reporters, own_feeds

        failures: list[tuple[str, Exception]] = []

        def on_failure(name: str, why: Exception) -> None:
            failures.append((name, why))

        feeds = own_feeds(self._reporters, on_failure)
        if self._records:
            feeds += active_reporters(self._host, self._reporting.flags, on_failure, kind=self._kind)
        engine = Engine(
            self._plan,
            host=self._host,
            backend=backend,
            ready=self._ready,
            judges=self._judges,
            board=ReporterBoard(feeds),
            output=self.output,
            redactor=self.redactor(),
            settings=self._settings(),
            stopping=stopping,
            kept=kept,
        )
        for feed in feeds:
            feed.on_failure = engine.reporter_failed
        for name, why in failures:
            engine.reporter_failed(name, why)
        return engine

    def _settings(self) -> RunSettings:
        from vally._version import __version__
        from vally.run.run_settings import RunSettings

        choices = self._choices
        return RunSettings(
            workers=self._workers,
            max_per_model=choices.max_per_model,
            max_retries=choices.max_retries,
            fail_fast=choices.fail_fast,
            max_cost=choices.max_cost,
            max_tokens=choices.max_tokens_total,
            skip_grade=choices.skip_grade,
            keep_session_logs=choices.keep_executor_session_logs,
            shutdown_timeout_s=choices.shutdown_timeout / 1000,
            backend_name=self._backend.record.name,
            version=__version__,
            environ=self._context.environ,
            metadata=self._project.metadata,
            suites=self._suites,
            reporting=self._reporting,
            kind=self._kind,
            diagnostics=self._diagnostics,
            notice=say,
            warn=print_warning,
            fail=print_error,
        )

    @property
    def _workers(self) -> int:
        return 1 if self._choices.in_place else self._choices.workers

    def _run_context(self) -> Any:
        from vally.run.trial import RunContext

        return RunContext(
            run_id=self._plan.options.run_id,
            cache_dir=self._context.cache_dir,
            project_root=self._project.root,
            process_env=self._context.environ,
            items=self._plan.total,
            workers=self._workers,
            keep_workspaces=self._choices.workspace is not None,
            agent_network=self._backend.agent_network,
            plan=self._plan,
            host=self._host,
            on_warning=print_warning,
        )

    def redactor(self) -> Redactor:
        """What takes secrets out of everything that this run writes."""
        from vally.run.providers import credential_variables
        from vally.run.redaction import Redactor

        variables = credential_variables(self._plan)
        redactor = Redactor(self._context.environ, variables=variables, parameters=self._choices.secrets)
        for name, value in self._environment_values.items():
            redactor.add(name, value)
        return redactor

    def exit_code(self, outcome: RunOutcome) -> int:
        """What the command should return for it."""
        return exit_code(outcome, require_pass=self._choices.require_pass)

    def finish(
        self,
        outcome: RunOutcome,
        *,
        artifacts: Mapping[str, Path] | None = None,
        document: Callable[[int], object] | None = None,
    ) -> int:
        """Say what was saved where and return the exit code.

        `artifacts` are further files by label. `document` makes, from the exit code, what `--output json` prints. With
        machine output on stdout everything else goes to stderr.
        """
        code = self.exit_code(outcome)
        if outcome.stdout_closed:
            return code
        with reporting():
            saved = {**outcome.artifacts, **(artifacts or {})}
            lines = [] if self._context.display.quiet else [*outcome.lines, *artifact_lines(self.output, saved)]
            lines.append(f"Output directory: {self.output.display}")
            print_closing(lines, to_stdout=self._choices.output == "text")
            if self._choices.output == "json" and document is not None:
                from vally.cli.eval_json import print_object

                print_object(document(code))
        return code
