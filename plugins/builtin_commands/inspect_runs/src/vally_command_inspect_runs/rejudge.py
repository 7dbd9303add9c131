"""One invocation of `vally rejudge`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import (
    EvalSpec,
    Redactor,
    RunLock,
    SelectionWords,
    SpecSelection,
    StoredRun,
    VallyError,
    dump_record,
    find_run,
    fit_glyphs,
    judge_cache,
    name_line,
    one_line,
    plural,
    print_warning,
    read_json,
    record_line,
    report_block,
    reporting,
)
from vally_command_inspect_runs.asking import Asker, Slot
from vally_command_inspect_runs.rewriting import Rewriting, update_experiment
from vally_command_inspect_runs.show import project_of, read_part, shown_path

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, RunSummary, StoredTrials


class Rejudge:
    """Finds what judges left open, asks again, and writes the file anew."""

    def __init__(self, context: CliContext, word: str, options: Mapping[str, Any]) -> None:
        self._context = context
        self._word = word
        self._options = options

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before a judge is asked."""
        run = find_run(self._word, self._context, project_of(self._context))
        directories = dict.fromkeys([run.path, *(part.results.parent for part in run.parts)])
        locks = [RunLock(directory, lambda path: shown_path(path, self._context.cwd)) for directory in directories]
        taken: list[RunLock] = []
        try:
            for lock in locks:
                warning = lock.acquire()
                taken.append(lock)
                if warning:
                    print_warning(warning)
            return self._locked(run)
        finally:
            for lock in taken:
                lock.release()

    def _locked(self, run: StoredRun) -> int:
        parts = [(read_part(part.results, part.results.name), part.label) for part in run.parts]
        parts = [(trials, label) for trials, label in parts if trials.entries]
        if not parts:
            shown = shown_path(run.parts[0].results if run.is_file else run.path, self._context.cwd)
            raise VallyError("holds no trial records", code="no-trial", where=shown)
        for trials, _ in parts:
            if trials.summary is None:
                hint = "it goes on or was killed; continue it with 'vally eval --resume' first"
                raise VallyError("the run has no summary", code="unfinished-run", where=trials.path.name, hints=(hint,))
        selection = self._selection(run)
        selection.find_project()
        host = selection.open_host()
        specs = None if host is None else selection.load(host)
        if host is None or specs is None:
            return 1
        for warning in host.take_warnings():
            print_warning(warning)
        return self._ask(run, parts, selection, host, specs)

    def _selection(self, run: StoredRun) -> SpecSelection:
        words = self._options["specs"] or self._manifest_specs(run)
        return SpecSelection(self._context, SelectionWords(specs=tuple(words)), params=dict(self._options["params"]))

    def _manifest_specs(self, run: StoredRun) -> list[str]:
        """The specs of the run as paths from here. Raises `VallyError` when the run does not tell or one is gone."""
        named = [item.get("path") for item in run.manifest().get("specs") or () if isinstance(item, dict)]
        if run.is_experiment:
            planned = read_json(run.path / "plan-snapshot.json").get("evals") or ()
            named += dict.fromkeys(item.get("evalFile") for item in planned if isinstance(item, dict))
        paths = list(dict.fromkeys(path for path in named if isinstance(path, str)))
        if not paths:
            hint = "name the specs with --eval-spec"
            raise VallyError("the run does not tell its specs", where=run.path.name, hints=(hint,))
        bases = (project_of(self._context).root, self._context.cwd, *run.path.parents)
        found = []
        for path in paths:
            place = next((base / path for base in bases if (base / path).is_file()), None)
            if place is None:
                raise VallyError(
                    f"{path} is not there any more", where=run.path.name, hints=("name it with --eval-spec",)
                )
            found.append(str(place))
        return found

    def _ask(
        self,
        run: StoredRun,
        parts: Sequence[tuple[StoredTrials, str | None]],
        selection: SpecSelection,
        host: PluginHost,
        specs: Sequence[EvalSpec],
    ) -> int:
        redactor = Redactor(self._context.environ, parameters=dict(self._options["params"]))
        for name, value in selection.environment_values.items():
            redactor.add(name, value)
        cache = judge_cache(self._context, self._options, run.path, redactor)
        asker = Asker(self._context, self._options, host=host, specs=specs, redactor=redactor, cache=cache, run=run)
        summaries: list[RunSummary] = []
        for trials, _ in parts:
            with Rewriting(trials) as rewriting:
                slots = asker.ask(trials, rewriting)
                self._tell(slots)
                if any(slot.changed for slot in slots):
                    summary = rewriting.write(self._context, host)
                else:
                    assert trials.summary is not None
                    summary = trials.summary
                self._lines(rewriting, summary)
                summaries.append(summary)
        if run.is_experiment and any(slot.changed for slot in asker.slots):
            update_experiment(run.path, summaries)
        return self._close(run, asker.slots, summaries)

    def _tell(self, slots: Sequence[Slot]) -> None:
        if self._options["output"] != "text" or not slots:
            return
        lines = []
        for slot in slots:
            glyph = "⚠" if slot.is_open else "✔" if slot.after is not None and slot.after.passed else "✘"
            what = one_line(slot.problem or (slot.after.evidence if slot.after else ""))
            lines.append(f"{glyph} {name_line(_trial_name(slot, slots))}   {name_line(slot.grader)}   {what}")
        self._write(report_block("".join(f"{line}\n" for line in lines), self._context.environ))

    def _lines(self, rewriting: Rewriting, summary: RunSummary) -> None:
        if self._options["output"] != "jsonl":
            return
        with reporting():
            for line in rewriting.changed_lines():
                sys.stdout.write(line.decode("utf-8"))
            sys.stdout.write(record_line(dump_record(summary)).decode("utf-8"))
            sys.stdout.flush()

    def _close(self, run: StoredRun, slots: Sequence[Slot], summaries: Sequence[RunSummary]) -> int:
        failed = any(summary.had_execution_errors or summary.partial for summary in summaries)
        passed = all(summary.passed for summary in summaries)
        code = 1 if failed or (self._options["require_pass"] and not passed) else 0
        still = sum(slot.is_open for slot in slots)
        if self._options["output"] == "json":
            document = {
                "type": "rejudge-run",
                "version": 1,
                "runDir": shown_path(run.path, self._context.cwd),
                "exitCode": code,
                "passed": passed,
                "hadExecutionErrors": any(summary.had_execution_errors for summary in summaries),
                "slots": [slot.record() for slot in slots],
            }
            self._write(record_line(document).decode("utf-8"))
        elif self._options["output"] == "text":
            if not slots:
                self._write("no judge ended with an error\n")
            else:
                self._write(
                    f"\n{plural(len(slots) - still, 'verdict')} of {len(slots)} found, {still} still without; "
                    f"{'passed' if passed else 'failed'}\nOutput directory: {shown_path(run.path, self._context.cwd)}\n"
                )
        return code

    def _write(self, text: str) -> None:
        with reporting():
            sys.stdout.write(text if self._options["output"] == "json" else fit_glyphs(text, sys.stdout))
            sys.stdout.flush()


def _trial_name(slot: Slot, slots: Sequence[Slot]) -> str:
    """The trial as a line names it: with its eval, variant and model where those of others differ."""
    number = f" #{slot.trial_index + 1}/{slot.total}" if slot.total > 1 else ""
    above = f"{slot.eval_name} / " if len({other.eval_name for other in slots}) > 1 else ""
    arms: list[tuple[str | None, set[str | None]]] = [
        (slot.variant, {other.variant for other in slots}),
        (slot.model, {other.model for other in slots}),
    ]
    named = ", ".join(name for name, every in arms if name is not None and len(every) > 1)
    return f"{above}{slot.stimulus}{number}{f' ({named})' if named else ''}"
