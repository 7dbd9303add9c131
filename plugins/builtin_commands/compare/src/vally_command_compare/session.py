"""One invocation of `vally compare`, from its words to its exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from vally import (
    GraderSpec,
    JudgePool,
    Redactor,
    SelectionWords,
    SpecSelection,
    Style,
    VallyError,
    atomic_write,
    display_path,
    existing_directory,
    find_project,
    judge_cache,
    judge_effort,
    mean,
    one_line,
    print_error,
    print_line,
    print_warning,
    problem_lines,
    provider_secrets,
    record_line,
    report_block,
    run_place,
    use_color,
    write_machine_output,
)
from vally_command_compare.experiments import ARGUMENT, Comparison, open_experiment
from vally_command_compare.judging import Comparer, JudgedPair, Rubric
from vally_command_compare.pairing import Pairing, pair_sides
from vally_command_compare.report import report_lines
from vally_command_compare.settings import ChosenJudge, judge_settings, recorded_defaults, rubrics_of
from vally_command_compare.sides import METRICS, Side, read_side
from vally_command_compare.step_summary import add_to_step_summary
from vally_command_compare.summary import comparison_record
from vally_command_compare.wording import differences_of_repeats, regressed

if TYPE_CHECKING:
    from vally import CliContext, EvalSpec, JudgeSettings, PluginHost

STDOUT = "-"
DEFAULT_EFFECT = 0.2
"""The difference that advice about the number of stimuli is for, unless --min-effect names one."""


class CompareSession:
    """Compares what the options name; `execute` returns the exit code and raises `VallyError`."""

    def __init__(self, context: CliContext, options: Mapping[str, Any]) -> None:
        self._context = context
        self._options = options
        self._min_effect: float = options["min_effect"]
        self._records: list[dict[str, Any]] = []
        self._judges: list[str] = []
        self._failed: list[str] = []
        self._specs: Sequence[EvalSpec] = ()

    def execute(self) -> int:
        """Compare everything, then write the records."""
        output = self._options["output"]
        if output not in (None, STDOUT):
            # Before judges are paid.
            _check_place(self._context.cwd / output, output)
        host, rubrics = self._plugins()
        comparer_record = self._grader(host)
        comparisons = list(self._comparisons())
        self._check_output(comparisons)
        for comparison in comparisons:
            self._compare(host, comparer_record, rubrics(comparer_record.name), comparison)
        if not self._records:
            raise VallyError("there is nothing to compare", hints=["no variant has trials that pair with the baseline"])
        self._write()
        problem = add_to_step_summary(self._records, self._judges, self._context.environ, self._min_effect)
        if problem is not None:
            print_warning(f"the step summary was not written: {problem}")
        return 1 if self._failed else 0

    def _check_output(self, comparisons: Sequence[Comparison]) -> None:
        """Raise `VallyError` when the records would take the place of what is compared."""
        output = self._options["output"]
        if output in (None, STDOUT):
            return
        target = (self._context.cwd / output).resolve()
        if any(target == side.path.resolve() for item in comparisons for side in (item.baseline, item.treatment)):
            raise VallyError(f"'{output}' is compared", where="--output", hints=["name another file"])

    def _comparisons(self) -> Iterator[Comparison]:
        options, cwd = self._options, self._context.cwd
        if options["directory"] is not None:
            place = run_place(options["directory"], self._context, where=ARGUMENT, experiment=True)
            directory = existing_directory(cwd, place, ARGUMENT)
            yield from open_experiment(directory).comparisons(options["variants"], self._warn_about)
            return
        sides = []
        for option in ("baseline", "treatment"):
            place = run_place(options[option], self._context, where=f"--{option}", experiment=False)
            sides.append(read_side(cwd / place, place, f"--{option}"))
            self._warn_about(sides[-1])
        names = {"baseline": sides[0].name, "treatment": sides[1].name}
        yield Comparison(names=names, baseline=sides[0], treatment=sides[1])

    def _warn_about(self, side: Side) -> None:
        shown = display_path(self._context.cwd, self._context.cwd)(side.path)
        for warning in problem_lines(side.problems, shown):
            print_warning(warning)

    def _plugins(self) -> tuple[PluginHost, Any]:
        """The plugins, and a function that gives the criteria for a grader's keyword."""
        context, options = self._context, self._options
        if not options["specs"]:
            project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
            host = context.host(project)
            self._stop_on(host)
            return host, lambda _: {}
        words = SelectionWords(specs=tuple(options["specs"]))
        selection = SpecSelection(context, words, params=dict(options["params"]), lenient=True)
        selection.find_project()
        opened = selection.open_host()
        specs = None if opened is None else selection.load(opened)
        if opened is None or specs is None:
            raise _Reported
        self._specs = specs
        return opened, lambda keyword: rubrics_of(specs, keyword)

    def _stop_on(self, host: PluginHost) -> None:
        problems = host.problems()
        for problem in problems:
            print_error(problem)
        if problems:
            raise _Reported

    def _grader(self, host: PluginHost) -> GraderSpec:
        record = host.require("grader", self._options["grader"])
        assert isinstance(record, GraderSpec)
        if not record.comparable:
            able = sorted(name for name, item in host.records("grader").items() if getattr(item, "comparable", False))
            raise VallyError(
                f"grader '{record.name}' cannot compare", where="--grader", hints=[f"these can: {', '.join(able)}"]
            )
        return record

    def _compare(
        self, host: PluginHost, record: GraderSpec, rubrics: Mapping[str, Rubric], comparison: Comparison
    ) -> None:
        pairing = pair_sides(comparison.baseline, comparison.treatment)
        judge = self._chosen_judge(comparison)
        settings = judge.settings
        judged = anyio.run(self._judge, host, record, rubrics, comparison, pairing, settings)
        document = comparison_record(comparison.names, pairing, judged, self._min_effect or DEFAULT_EFFECT)
        self._records.append(self._redactor(settings).value(document))
        self._judges.append(settings.model)
        self._report(self._records[-1], pairing, settings)
        self._check(document, judge.hints() if record.requires_judge else ())

    def _chosen_judge(self, comparison: Comparison) -> ChosenJudge:
        file = comparison.names.get("evalFile")
        recorded = recorded_defaults(comparison.baseline.path.parent, file)
        effort = judge_effort(self._context, self._options)
        return judge_settings(recorded, self._specs, file, self._options["judge_model"], effort)

    def _redactor(self, settings: JudgeSettings) -> Redactor:
        redactor = Redactor(self._context.environ, parameters=dict(self._options["params"]))
        for secret in provider_secrets(settings.provider) if settings.provider else ():
            redactor.add("judge_provider", secret)
        return redactor

    async def _judge(
        self,
        host: PluginHost,
        record: GraderSpec,
        rubrics: Mapping[str, Rubric],
        comparison: Comparison,
        pairing: Pairing,
        settings: JudgeSettings,
    ) -> list[JudgedPair]:
        cache = judge_cache(self._context, self._options, None, self._redactor(settings))
        judges = JudgePool(
            host, environ=self._context.environ, cache=cache, context=self._context.judge_context("compare")
        )
        comparer = Comparer(host, record, rubrics=rubrics, make_judge=lambda: judges.client(settings))
        total, done = len(pairing.judged), 0

        def tell(item: JudgedPair) -> None:
            nonlocal done
            done += 1
            if self._shows_progress():
                glyph, reason = ("⚠", f"  {one_line(item.result.evidence)}") if item.result.errored else ("✔", "")
                print_line(f"[{done}/{total}] {glyph} {item.pair.baseline.label}{reason}", to_stderr=True)

        try:
            return await comparer.compare_all(
                comparison.baseline,
                comparison.treatment,
                pairing.judged,
                workers=self._options["workers"],
                on_done=tell,
            )
        finally:
            with anyio.CancelScope(shield=True):
                for warning in await judges.shutdown():
                    print_warning(warning)

    def _shows_progress(self) -> bool:
        display = self._context.display
        return not display.quiet and display.progress != "none"

    def _report(self, document: Mapping[str, Any], pairing: Pairing, settings: JudgeSettings) -> None:
        stream = sys.stderr if self._options["output"] == STDOUT else sys.stdout
        display = self._context.display
        lines = list(
            report_lines(
                document,
                _mean_metrics(pairing),
                settings.model,
                Style(use_color(display.color, self._context.environ, stream)),
                min_effect=self._min_effect,
                verbose=display.verbose,
            )
        )
        if display.quiet:
            lines = [lines[0], *(line for line in lines[1:] if not line.startswith(" "))]
        click.echo(report_block("\n".join(lines) + "\n", self._context.environ), file=stream, nl=False)

    def _check(self, document: Mapping[str, Any], hints: Sequence[str]) -> None:
        summary = document["summary"]
        # Of an experiment there are several records of the same two variants.
        places = [document[key] for key in ("evalFile", "model") if document.get(key)]
        name = f"{document['baseline']} and {document['treatment']}" + "".join(f", {place}" for place in places)
        if not summary["trialCount"]:
            first = next((trial["evidence"] for item in document["stimuli"] for trial in item["trials"]), "")
            if first:
                self._fail(f"{name}: every comparison errored, the first with: {first}", hints)
            else:
                self._fail(f"{name}: nothing compared")
        if self._options["fail_on_regression"] and regressed(summary, self._min_effect):
            self._fail(f"{name}: the treatment is credibly worse")
        if self._options["repeats"]:
            for difference in differences_of_repeats(summary):
                self._fail(f"{name}: repeats of one configuration differ: {difference}")

    def _fail(self, reason: str, hints: Sequence[str] = ()) -> None:
        self._failed.append(reason)
        print_error(VallyError(reason, hints=hints))

    def _write(self) -> None:
        output = self._options["output"]
        if output is None:
            return
        data = b"".join(record_line(record) for record in self._records)
        if output == STDOUT:
            write_machine_output(data.decode("utf-8"))
            return
        path: Path = self._context.cwd / output
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, data, is_named=True)
        except OSError as error:
            raise VallyError(f"cannot write '{path}': {error.strerror or error}", where="--output") from error
        if not self._context.display.quiet:
            print_line(f"Saved comparison → {output}")


def _check_place(path: Path, shown: str) -> None:
    """Raise `VallyError` when no file can be written there."""
    if path.is_dir():
        raise VallyError(f"'{shown}' is a directory", where="--output", hints=["name a file"])
    if path.exists() and not path.is_file():
        return
    above = next(parent for parent in path.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        reason = os.strerror(errno.EACCES if above.is_dir() else errno.ENOTDIR)
        raise VallyError(f"cannot write '{shown}': {reason}", where="--output")


class _Reported(VallyError):
    """What is wrong was printed already."""

    def __init__(self) -> None:
        super().__init__("")


def _mean_metrics(pairing: Pairing) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in METRICS:
        values = [pair.baseline.metrics[name] for pair in pairing.judged if name in pair.baseline.metrics]
        if values:
            found[name] = mean(values)
    return found


def run(context: CliContext, options: Mapping[str, Any]) -> int:
    """Run the command."""
    try:
        return CompareSession(context, options).execute()
    except _Reported:
        return 1
