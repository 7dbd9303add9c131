"""The part of `vally eval` that needs plugins at work: preparing them, the run, and its closing lines."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vally.cli.messages import print_diagnostics, print_error, print_hints, print_warning, say, tell
from vally.errors import BackendError, ConfigInvalid, UsageError, VallyError
from vally.run.report_stream import reporting
from vally.run.trial_record import described
from vally.text.display import strip_controls
from vally.text.glyphs import fit_glyphs

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic, Project
    from vally.records import BackendSpec
    from vally.run.engine import Engine, RunOutcome, RunSettings
    from vally.run.judge_cache import JudgeCache
    from vally.run.plan import Plan
    from vally.run.preparation import Preparation
    from vally.run.redaction import Redactor
    from vally.run.reporting import RunOptions
    from vally.run.run_output import RunOutput

DEFAULT_OUTPUT_DIR = "vally-results"


class EvalSession:
    """Prepares the plugins of a plan and runs it."""

    def __init__(
        self,
        context: CliContext,
        options: Mapping[str, Any],
        *,
        plan: Plan,
        project: Project,
        host: PluginHost,
        reporting: RunOptions,
        diagnostics: tuple[Diagnostic, ...],
        environment_values: Mapping[str, str],
        suites: Mapping[str, Mapping[str, object]],
    ) -> None:
        self._context = context
        self._options = options
        self._plan = plan
        self._project = project
        self._host = host
        self._reporting = reporting
        self._diagnostics = diagnostics
        self._environment_values = environment_values
        self._suites = suites

    def prepare(self) -> bool:
        """Make executors and backend ready and check every need; prints what is wrong and returns whether to go on."""
        from vally.run.judge_checks import judge_problems
        from vally.run.judges import JudgePool
        from vally.run.preparation import prepare
        from vally.run.provider_checks import credential_problems

        self._backend_record = self._backend()
        self._ready: Preparation = prepare(
            self._plan,
            self._host,
            backend_isolates=self._backend_record.isolates,
            backend=self._backend_record.name,
            skip_grade=self._options["skip_grade"],
        )
        self._ready.diagnostics += credential_problems(self._plan, self._ready, self._context.environ)
        print_diagnostics(self._ready.diagnostics)
        self._judges = JudgePool(self._host, environ=self._context.environ, cache=self._judge_cache())
        problems = [] if self._options["skip_grade"] else judge_problems(self._plan, self._host, self._judges)
        for problem in problems:
            say(f"error: {problem.message} [{problem.code}]")
            print_hints(problem.hints)
        return not problems and not any(item.level == "error" for item in self._ready.diagnostics)

    def _backend(self) -> BackendSpec:
        from vally.model.evalspec import DEFAULT_BACKEND
        from vally.records import BackendSpec

        words = self._options["backend_args"]
        name = self._options["backend"] or self._project.backend
        if words and name is None:
            raise UsageError("--backend-args needs --backend or a default backend in .vally.yaml")
        record = self._host.resolve_one("backend", name or DEFAULT_BACKEND, bases=(self._context.cwd,))
        assert isinstance(record, BackendSpec)
        self._backend_args = self._merged_args(words, default=self._options["backend"] is None)
        self._check_args(record)
        return record

    def _check_args(self, record: BackendSpec) -> None:
        from vally.text.suggest import did_you_mean

        try:
            self._host.parse_config(record, self._backend_args)
        except ConfigInvalid as error:
            model = self._host.config_model(record)
            fields = model.model_fields if model is not None else {}
            known = sorted(field.alias or name for name, field in fields.items())
            unknown = next((word for word in self._backend_args if word not in known), None)
            hint = (did_you_mean(unknown, known) if unknown else None) or f"arguments: {', '.join(known) or 'none'}"
            raise UsageError(
                f"backend '{record.name}': {error.problems[0]}", where="--backend-args", hints=[hint]
            ) from None

    def _merged_args(self, words: Any, *, default: bool) -> dict[str, str | list[str]]:
        given: dict[str, str | list[str]] = {}
        for key, value in words:
            earlier = given.get(key)
            given[key] = value if earlier is None else [*([earlier] if isinstance(earlier, str) else earlier), value]
        return {**(self._project.backend_args if default else {}), **given}

    def run(self) -> int:
        """Run the plan and return the exit code. Raises `VallyError` when it could not start."""
        import anyio

        if not self._options["skip_grade"]:
            from vally.run.judge_checks import judge_notices

            for notice in judge_notices(self._plan, self._host, self._judges):
                say(notice)
        outcome = anyio.run(self._run)
        code = self._exit_code(outcome)
        with reporting():
            self._closing(outcome, code)
        return code

    async def _run(self) -> RunOutcome:
        from vally.cli.event_loop import leave_threads_behind

        leave_threads_behind()
        if self._options["preflight"]:
            from vally.run.preflight import preflight

            skip_grade = self._options["skip_grade"]
            await preflight(self._plan, self._host, self._ready, self._judges, skip_grade=skip_grade)
        backend = self._host.create(self._backend_record)
        try:
            await self._prepare_backend(backend)
            redactor = self._redactor()
            output = self._make_output(redactor)
            try:
                return await self._engine(backend, output, redactor).run()
            finally:
                output.close()
        except BaseException:
            await self._abandon(backend)
            raise

    async def _prepare_backend(self, backend: Any) -> None:
        from vally.run.calling import invoke

        blocking = self._backend_record.blocking
        try:
            await invoke(backend.prepare, self._backend_args, self._run_context(), blocking=blocking)
        except VallyError:
            raise
        except Exception as error:
            message = f"backend '{self._backend_record.name}' cannot start: {described(error)}"
            raise BackendError(message, code="backend-exception") from error

    async def _abandon(self, backend: Any) -> None:
        """Let a backend remove what it made for a run that does not happen."""
        import anyio

        from vally.run.calling import invoke

        with anyio.CancelScope(shield=True), anyio.move_on_after(self._shutdown_timeout_s):
            try:
                await invoke(backend.shutdown, blocking=self._backend_record.blocking)
            except Exception as error:
                print_warning(f"backend '{self._backend_record.name}' did not shut down: {described(error)}")

    @property
    def _shutdown_timeout_s(self) -> float:
        return float(self._options["shutdown_timeout"]) / 1000

    def _make_output(self, redactor: Redactor) -> RunOutput:
        from vally.run.run_output import RunOutput, display_path

        display = display_path(self._project.root, self._context.cwd)
        self._output = RunOutput.create(self._output_dir(), redactor, datetime.now(UTC), display)
        self._write_manifest(self._output)
        return self._output

    def _engine(self, backend: Any, output: RunOutput, redactor: Redactor) -> Engine:
        from vally.run.engine import Engine
        from vally.run.reporters import ReporterBoard, active_reporters

        failures: list[tuple[str, Exception]] = []
        feeds = active_reporters(self._host, self._reporting.flags, lambda name, why: failures.append((name, why)))
        engine = Engine(
            self._plan,
            host=self._host,
            backend=backend,
            ready=self._ready,
            judges=self._judges,
            board=ReporterBoard(feeds),
            output=output,
            redactor=redactor,
            settings=self._settings(),
        )
        for feed in feeds:
            feed.on_failure = engine.reporter_failed
        for name, why in failures:
            engine.reporter_failed(name, why)
        return engine

    def _settings(self) -> RunSettings:
        from vally._version import __version__
        from vally.run.engine import RunSettings

        options = self._options
        return RunSettings(
            workers=1 if options["in_place"] else options["workers"],
            max_retries=options["max_retries"],
            fail_fast=options["fail_fast"],
            skip_grade=options["skip_grade"],
            require_pass=options["require_pass"],
            keep_session_logs=options["keep_executor_session_logs"],
            shutdown_timeout_s=self._shutdown_timeout_s,
            backend_name=self._backend_record.name,
            version=__version__,
            environ=self._context.environ,
            metadata=self._project.metadata,
            suites=self._suites,
            reporting=self._reporting,
            diagnostics=self._diagnostics,
            notice=say,
            warn=print_warning,
            fail=print_error,
        )

    def _write_manifest(self, output: RunOutput) -> None:
        from vally.cli.eval_manifest import manifest_facts

        facts = manifest_facts(self._plan, self._project, self._host, self._options, self._backend_args)
        try:
            output.directory.write_manifest(facts)
        except OSError as error:
            print_warning(f"run-manifest.json not written: {error.strerror or error}")

    def _run_context(self) -> Any:
        from vally.run.trial import RunContext

        return RunContext(
            run_id=self._plan.options.run_id,
            cache_dir=self._context.cache_dir,
            project_root=self._project.root,
            process_env=self._context.environ,
            items=self._plan.total,
            workers=self._options["workers"],
            keep_workspaces=self._options["workspace"] is not None,
            on_warning=print_warning,
        )

    def _redactor(self) -> Redactor:
        from vally.run.providers import credential_variables
        from vally.run.redaction import Redactor

        variables = credential_variables(self._plan)
        redactor = Redactor(self._context.environ, variables=variables, parameters=self._secrets())
        for name, value in self._environment_values.items():
            redactor.add(name, value)
        return redactor

    def _judge_cache(self) -> JudgeCache | None:
        from vally.cli.judge_options import judge_cache

        return judge_cache(self._context, self._options, self._output_dir(), self._redactor())

    def _secrets(self) -> dict[str, str]:
        return {**dict(self._options["params"]), **dict(self._options["backend_args"])}

    def _output_dir(self) -> Path:
        named = self._options["output_dir"]
        if named:
            return self._context.cwd / str(named)
        if self._project.results:
            return self._project.root / self._project.results
        return self._context.cwd / DEFAULT_OUTPUT_DIR

    def _exit_code(self, outcome: RunOutcome) -> int:
        if outcome.stdout_closed:
            return 128 + signal.SIGPIPE
        if outcome.signal is not None:
            return 128 + outcome.signal
        summary = outcome.summary
        failed = summary.had_execution_errors or summary.partial
        return 1 if failed or (self._options["require_pass"] and not summary.passed) else 0

    def _closing(self, outcome: RunOutcome, code: int) -> None:
        """Say what was saved where; with machine output on stdout this goes to stderr."""
        if outcome.stdout_closed:
            return
        lines = [] if self._context.display.quiet else [*outcome.lines, *self._artifact_lines(outcome)]
        lines = [strip_controls(line) for line in [*lines, f"Output directory: {self._output.display}"]]
        if self._options["output"] == "text":
            click.echo(fit_glyphs("\n".join(lines), sys.stdout))
        else:
            tell(lines)
        if self._options["output"] == "json":
            from vally.cli.eval_json import run_object

            click.echo(json.dumps(run_object(outcome, code, self._output), ensure_ascii=False))

    def _artifact_lines(self, outcome: RunOutcome) -> list[str]:
        width = max(len(label) for label in outcome.artifacts)
        rows = [f"  {label:<{width}} → {self._output.display_of(path)}" for label, path in outcome.artifacts.items()]
        return ["Saved artifacts", *rows]
