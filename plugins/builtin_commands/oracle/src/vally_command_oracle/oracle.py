"""One invocation of `vally oracle`."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vally import (
    PlanOptions,
    RunChoices,
    RunSession,
    SelectionWords,
    SpecSelection,
    Style,
    VallyError,
    fit_glyphs,
    is_terminal,
    judge_effort,
    make_plan,
    parse_duration,
    print_warning,
    record_line,
    report_block,
    report_width,
    reporting,
    reserved_stdout,
    use_color,
    workspace_directory,
)
from vally_command_oracle.applying import NAME, golden_executor
from vally_command_oracle.golden import has_golden, read_golden
from vally_command_oracle.gradable import gradable
from vally_command_oracle.report import OracleLayout
from vally_command_oracle.results import Case, OracleResult, evaluate

if TYPE_CHECKING:
    from vally import CliContext, EvalSpec, Plan, PluginHost, TrialDone

OUTPUT_DIR = "vally-results"
SPARE_MS = 60_000
"""What a trial may take beside its golden command."""


class Oracle:
    """Carries an invocation from its options to its exit code."""

    def __init__(self, context: CliContext, options: Mapping[str, Any]) -> None:
        self._context = context
        self._options = options
        self._baseline: bool = options["no_golden_input"]
        self._run_id: str = options["run_id"] or str(uuid.uuid4())

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before the first stimulus."""
        with reserved_stdout(self._options["output"] != "text"):
            return self._execute()

    def _execute(self) -> int:
        options = self._options
        words = SelectionWords(specs=options["specs"], tags=options["tags"], patterns=options["patterns"])
        selection = SpecSelection(self._context, words, params=dict(options["params"]))
        selection.find_project()
        host = selection.open_host()
        specs = None if host is None else selection.load(host)
        if host is None or specs is None:
            return 1
        if not specs:
            selection.print_nothing_selected()
            return 1
        cases = self._cases(specs, host)
        plan = self._plan(cases, selection)
        items = [item.item_id for item in plan.items()]
        inputs = {item: case.golden for item, case in zip(items, cases, strict=True)}
        collector = Collector(dict(zip(items, cases, strict=True)), self._printer(cases), options)
        session = RunSession(
            self._context,
            RunChoices.of(options),
            plan=plan,
            project=selection.project,
            host=host,
            kind="oracle",
            output_dir=self._context.cwd / (selection.project.results or OUTPUT_DIR),
            diagnostics=selection.diagnostics,
            environment_values=selection.environment_values,
            executors={NAME: golden_executor(inputs, withhold=self._baseline)},
            reporters=[collector],
        )
        if not session.prepare():
            return 1
        for warning in host.take_warnings():
            print_warning(warning)
        outcome = session.run()
        if outcome.stdout_closed:
            return 128 + signal.SIGPIPE
        with reporting():
            self._close(collector)
        if outcome.signal is not None:
            return 128 + outcome.signal
        return 0 if collector.passed else 1

    def _cases(self, specs: Sequence[EvalSpec], host: PluginHost) -> list[Case]:
        """The stimuli with golden inputs. Raises `VallyError` for named ones without, and when there is none."""
        chosen = [(spec, stimulus) for spec in specs for stimulus in spec.stimuli]
        without = [stimulus.name for _, stimulus in chosen if not has_golden(stimulus)]
        named = [pattern for pattern in self._options["patterns"] if pattern in without]
        if named:
            raise VallyError(
                f"stimulus '{named[0]}' declares no golden input",
                where="--stimulus",
                hints=("add golden_patch, golden_command or golden_trajectory to it",),
            )
        cases = []
        for spec, stimulus in chosen:
            if has_golden(stimulus):
                golden = read_golden(stimulus)
                graders = gradable(stimulus, golden, host, spec.spec_dir, baseline=self._baseline)
                cases.append(Case(spec=spec, stimulus=stimulus, golden=golden, graders=graders))
        if not cases:
            hint = "add golden_patch, golden_command or golden_trajectory to a stimulus"
            raise VallyError("no stimulus with a golden input is selected", code="no-golden-input", hints=(hint,))
        return cases

    def _plan(self, cases: Sequence[Case], selection: SpecSelection) -> Plan:
        options, context = self._options, self._context
        specs: dict[str, EvalSpec] = {}
        for case in cases:
            # Nobody talks to a golden input, and it calls no tool.
            graded = replace(case.stimulus, graders=tuple(case.graders.entries), simulation=None)
            known = specs.get(case.spec.display_path)
            before = known.stimuli if known else ()
            specs[case.spec.display_path] = replace(case.spec, stimuli=(*before, graded))
        commands = [case.golden.command for case in cases if case.golden.command is not None]
        longest = max((parse_duration(command.timeout) for command in commands), default=0)
        plan_options = PlanOptions(
            run_id=self._run_id,
            project_root=selection.project.root,
            work_dir=context.cwd,
            executor=NAME,
            runs=1,
            timeout_ms=longest + SPARE_MS,
            judge_model=options["judge_model"],
            judge_effort=judge_effort(context, options),
            workspace=workspace_directory(context.cwd, options["workspace"]),
        )
        return make_plan(list(specs.values()), plan_options)

    def _printer(self, cases: Sequence[Case]) -> Printer:
        display = self._context.display
        layout = OracleLayout.of(
            cases,
            Style(use_color(display.color, self._context.environ, sys.stdout)),
            baseline=self._baseline,
            verbose=display.verbose,
            width=report_width(sys.stdout, self._context.environ) if is_terminal(sys.stdout) else None,
        )
        return Printer(layout, self._options, self._context, self._run_id)

    def _close(self, collector: Collector) -> None:
        results = collector.ordered()
        if self._options["output"] == "json":
            document = {
                "type": "oracle-run",
                "version": 1,
                "runId": self._run_id,
                "passed": collector.passed,
                "results": [result.record(self._run_id) for result in results],
            }
            _write(record_line(document).decode())
        elif self._options["output"] == "text":
            expected = sum(result.passed for result in results)
            total = len(collector.cases)
            noun = "stimulus" if total == 1 else "stimuli"
            blank = "" if self._context.display.quiet else "\n"
            how = "applied, not graded" if self._options["skip_grade"] else "as expected"
            _write(f"{blank}Oracle: {expected}/{total} {noun} {how}\n")


class Printer:
    """Prints results in the format that was asked for."""

    def __init__(self, layout: OracleLayout, options: Mapping[str, Any], context: CliContext, run_id: str) -> None:
        self._layout = layout
        self._options = options
        self._context = context
        self._run_id = run_id

    def as_it_comes(self, result: OracleResult) -> None:
        """A result, the moment it is there."""
        if self._options["output"] == "jsonl":
            _write(record_line(result.record(self._run_id)).decode())

    def in_order(self, result: OracleResult) -> None:
        """A result, once all before it are there."""
        if self._options["output"] != "text" or (self._context.display.quiet and result.passed):
            return
        lines = self._layout.lines(result, skip_grade=self._options["skip_grade"])
        _write(fit_glyphs(report_block("".join(f"{line}\n" for line in lines), self._context.environ), sys.stdout))


class Collector:
    """The reporter of the run: gathers results, and prints them in the order of the plan."""

    def __init__(self, cases: Mapping[str, Case], printer: Printer, options: Mapping[str, Any]) -> None:
        self.cases = cases
        self._printer = printer
        self._options = options
        self._results: dict[str, OracleResult] = {}
        self._waiting = list(cases)

    @property
    def passed(self) -> bool:
        """Whether every selected stimulus behaves as expected."""
        return len(self._results) == len(self.cases) and all(result.passed for result in self._results.values())

    def ordered(self) -> list[OracleResult]:
        """The results in the order of the plan."""
        return [self._results[item] for item in self.cases if item in self._results]

    def on_trial_result(self, event: TrialDone) -> None:
        """Take a result."""
        item = event.item.item_id
        options = self._options
        result = evaluate(
            self.cases[item], event.result, baseline=options["no_golden_input"], skip_grade=options["skip_grade"]
        )
        self._results[item] = result
        self._printer.as_it_comes(result)
        while self._waiting and self._waiting[0] in self._results:
            self._printer.in_order(self._results[self._waiting.pop(0)])


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
