"""One invocation of `vally experiment run`, from its words to its exit code."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vally import (
    Diagnostic,
    PlanEntry,
    PlanOptions,
    Redactor,
    RunChoices,
    RunLayout,
    RunOutput,
    RunSession,
    RunTally,
    SelectionWords,
    UsageError,
    VallyError,
    atomic_write,
    find_project,
    judge_effort,
    make_plan,
    print_diagnostics,
    print_error,
    print_line,
    print_object,
    print_warning,
    read_experiment,
    record_line,
    reporting,
    reserved_stdout,
    timestamp,
    workspace_directory,
)
from vally_command_experiment.comparing import check_comparing, compare
from vally_command_experiment.contamination import contamination_error
from vally_command_experiment.documents import (
    COMPARISONS_NAME,
    PLAN_NAME,
    PROVENANCE_NAME,
    SHARD_MANIFEST_NAME,
    SUMMARY_NAME,
    manifest,
    plan_snapshot,
    provenance,
    shard_manifest,
    summary_document,
)
from vally_command_experiment.dry_run import print_plans
from vally_command_experiment.planning import Choice, Experiment
from vally_command_experiment.progress import Progress
from vally_command_experiment.report_data import Report, plan_rows
from vally_command_experiment.reports import write_reports
from vally_command_experiment.resuming import check_unchanged
from vally_command_experiment.shards import Shard
from vally_command_experiment.writing import write_document

if TYPE_CHECKING:
    from vally import CliContext, Plan, PluginHost, Project, Resumption, RunOutcome

DEFAULT_OUTPUT_DIR = "vally-experiment-results"
DEFAULT_WORKERS = 5


class ExperimentRun:
    """Carries an invocation from its options to its exit code."""

    def __init__(
        self,
        context: CliContext,
        options: Mapping[str, Any],
        flags: Mapping[str, Any],
        resumption: Resumption | None = None,
    ) -> None:
        self._context = context
        self._resumption = resumption
        self._options = options
        self._choices = RunChoices.of(options, flags)
        index, count = options["shard"] or (1, 1)
        self._shard = Shard(index, count, options["shard_strategy"])
        self._run_id: str = options["run_id"] or str(uuid.uuid4())
        self._progress = Progress()

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before the run."""
        with reserved_stdout(self._options["output"] != "text"):
            return self._execute()

    def _execute(self) -> int:
        context, options = self._context, self._options
        path: Path = context.cwd / options["file"]
        if not path.is_file():
            why = "is not a file; name the experiment file itself" if path.exists() else "does not exist"
            raise VallyError(f"'{options['file']}' {why}", where="FILE")
        project = find_project(path.parent, context.cwd, context.config_path, context.no_config)
        host = context.host(project, base=path.parent)
        if self._failed_plugins(host):
            return 1
        resolved = read_experiment(
            path,
            params=dict(options["params"]),
            project=project,
            host=host,
            environ=context.environ,
            settings=self._settings(),
        )
        # What is wrong with an eval is found in each variant anew.
        found = [*project.diagnostics, *resolved.diagnostics, *self._unused(resolved.used_params)]
        diagnostics = list(dict.fromkeys(found))
        print_diagnostics(diagnostics)
        if resolved.config is None or any(item.level == "error" for item in diagnostics):
            return 1
        redactor = Redactor(context.environ, parameters=dict(options["params"]))
        for name, value in resolved.environment_values.items():
            redactor.add(name, value)
        experiment = Experiment.of(resolved, redactor)
        return self._planned(experiment, project, host, resolved)

    def _failed_plugins(self, host: PluginHost) -> bool:
        problems = host.problems()
        for problem in problems:
            print_error(problem)
        return bool(problems)

    def _unused(self, used: frozenset[str]) -> list[Diagnostic]:
        return [
            Diagnostic(code="unused-parameter", level="warning", message=f"--param {name} is not used by any file")
            for name, _ in self._options["params"]
            if name not in used
        ]

    def _settings(self) -> dict[str, object]:
        names = ("judge_model", "judge_reasoning_effort")
        return {name: self._options[name] for name in names if self._options[name] is not None}

    def _planned(self, experiment: Experiment, project: Project, host: PluginHost, resolved: Any) -> int:
        if self._options["compare"]:
            check_comparing(experiment, host)
        choice = Choice(
            variants=tuple(self._options["variants"]),
            eval_filters=tuple(self._options["eval_filters"]),
            words=SelectionWords(tags=self._options["tags"], patterns=self._options["patterns"]),
            shard=self._shard,
        )
        entries = choice.entries(experiment, self._run_id)
        plan = self._plan(entries, project)
        output_dir = self._context.cwd / (self._options["output_dir"] or DEFAULT_OUTPUT_DIR)
        workers = self._options["workers"] or experiment.config.workers or DEFAULT_WORKERS
        session = RunSession(
            self._context,
            replace(self._choices, workers=workers),
            plan=plan,
            project=project,
            host=host,
            kind="experiment",
            output_dir=output_dir,
            options=self._options,
            diagnostics=resolved.diagnostics,
            environment_values=resolved.environment_values,
            reporters=[self._progress],
        )
        if not session.prepare():
            return 1
        for warning in host.take_warnings():
            print_warning(warning)
        if self._options["dry_run"]:
            print_plans(experiment, plan, self._options["output"])
            session.ask_backend()
            return 0
        skipped = list(dict.fromkeys(plan.skipped))
        if not self._context.display.quiet or not plan.evals:
            for name in skipped:
                print_line(f"{name}: skipped (runs: 0)", to_stderr=True)
        if skipped and not plan.evals and self._shard.count == 1:
            return self._nothing_run(experiment)
        return self._run(session, experiment, plan, output_dir)

    def _nothing_run(self, experiment: Experiment) -> int:
        """What is only validated has no run directory."""
        if self._options["output"] == "json":
            summary = RunTally(()).run_summary(run_id=self._run_id, started_at=timestamp())
            head = manifest(experiment, self._run_id)["experiment"]
            document = {**summary_document(head, summary, []), "runDir": None, "exitCode": 0}
            with reporting():
                print_object(document)
        return 0

    def _plan(self, entries: Sequence[PlanEntry], project: Project) -> Plan:
        options, context = self._options, self._context
        plan_options = PlanOptions(
            run_id=self._run_id,
            project_root=project.root,
            work_dir=context.cwd,
            threshold=options["threshold"],
            judge_model=options["judge_model"],
            judge_effort=judge_effort(context, options),
            workspace=workspace_directory(context.cwd, options["workspace"]),
            seed=options["seed"],
        )
        return make_plan(entries, plan_options)

    def _run(self, session: RunSession, experiment: Experiment, plan: Plan, output_dir: Path) -> int:
        sharded = self._options["shard"] is not None
        layout = RunLayout(
            parent=output_dir,
            name=f"{self._run_id}/{self._shard.directory}" if sharded else None,
            parts=tuple(experiment.parts.values()),
        )
        base = manifest(experiment, self._run_id)
        keys = [item.item_id for item in plan.items()]

        def write_manifest() -> None:
            document = shard_manifest(base, self._shard, keys, self._progress.completed)
            write_document(session.output.path / SHARD_MANIFEST_NAME, document)

        def begin(output: RunOutput) -> None:
            session.output = output
            write_document(output.path / PLAN_NAME, plan_snapshot(experiment, self._options["threshold"]))
            self._write_provenance(session, experiment, plan)
            write_manifest()
            self._progress.write = write_manifest

        if self._resumption is not None:
            check_unchanged(self._resumption.directory.path, experiment)
            outcome = session.run(None, resumption=self._resumption, on_directory=begin)
        else:
            outcome = session.run(layout, on_directory=begin)
        write_manifest()
        return self._finish(session, experiment, base["experiment"], outcome)

    def _write_provenance(self, session: RunSession, experiment: Experiment, plan: Plan) -> None:
        planned = {(item.planned.variant, item.planned.eval_file_path) for item in plan.evals}
        redactor = session.redactor()
        for variant, part in experiment.parts.items():
            lines = [
                record_line(redactor.value(provenance(experiment, item, self._run_id)))
                for item in experiment.specs
                if item.variant == variant and (variant, item.eval_file) in planned
            ]
            atomic_write(session.output.path / part / PROVENANCE_NAME, b"".join(lines))

    def _finish(self, session: RunSession, experiment: Experiment, head: Mapping[str, Any], outcome: RunOutcome) -> int:
        path = session.output.path
        contaminated = self._progress.loaded.contaminated()
        for item in contaminated:
            print_error(contamination_error(item))
        # Comparing reads the summary, to leave out what is contaminated.
        write_document(path / SUMMARY_NAME, summary_document(head, outcome.summary, [], contaminated))
        compared = 0
        comparisons: list[dict[str, Any]] = []
        if self._options["compare"] and outcome.signal is None and not outcome.stdout_closed:
            told = not self._choices.reporter_flags.get("no-step-summary")
            target = path / COMPARISONS_NAME
            compared, comparisons = compare(self._context, session, target, self._options, step_summary=told)
        document = summary_document(head, outcome.summary, comparisons, contaminated)
        write_document(path / SUMMARY_NAME, document)
        report = Report(document, self._progress.figures, comparisons, plan_rows(experiment))
        artifacts = write_reports(path, report, html=bool(self._choices.reporter_flags.get("html")))
        code = session.finish(outcome, artifacts=artifacts, document=lambda code: self._object(session, document, code))
        return code or compared or int(bool(contaminated))

    def _object(self, session: RunSession, document: Mapping[str, Any], code: int) -> dict[str, Any]:
        return {**document, "runDir": session.output.display, "exitCode": code}


def check_usage(options: Mapping[str, Any]) -> None:
    """Raise for options that exclude or need each other."""
    if options["file"] is None:
        raise click.UsageError("name the file of an experiment")
    if options["shard"] is not None and not options["run_id"]:
        raise click.UsageError("--shard needs --run-id, the same for all shards of a run")
    if options["shard"] is not None and options["compare"]:
        raise click.UsageError(
            "--compare needs all trials, so it cannot be combined with --shard; compare after merging"
        )
    if options["skip_grade"] and options["require_pass"]:
        raise click.UsageError("--require-pass needs grades, so it cannot be combined with --skip-grade")
    if options["workers"] is not None and options["workers"] < 1:
        raise UsageError("must be at least 1", where="--workers")
