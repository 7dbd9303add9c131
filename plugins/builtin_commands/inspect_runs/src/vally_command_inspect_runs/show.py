"""One invocation of `vally show`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    ReporterSpec,
    RunOptions,
    SpecError,
    StoredRun,
    StoredTrials,
    Style,
    TrialChoice,
    TrialEntry,
    VallyError,
    find_project,
    find_run,
    fit_glyphs,
    is_being_written,
    load_whole,
    name_line,
    one_line,
    print_warning,
    problem_lines,
    read_json,
    read_trials,
    record_line,
    report_block,
    report_width,
    run_id,
    use_color,
    write_machine_output,
)
from vally_command_inspect_runs.pager import paged
from vally_command_inspect_runs.replay import Replay, ReplaySettings, in_plan_order
from vally_command_inspect_runs.reports import saved_files
from vally_command_inspect_runs.trial_view import TrialLayout

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, Project

Chosen = list[tuple[StoredTrials, list[TrialEntry]]]


class Show:
    """Reads a run and prints its report, some of its trials, or their records."""

    def __init__(self, context: CliContext, word: str | None, options: Mapping[str, Any]) -> None:
        self._context = context
        self._word = word
        self._options = options
        self._choice = TrialChoice(**{key: options[key] for key in ("stimulus", "trial", "model", "variant", "failed")})
        self._style = Style(use_color(context.display.color, context.environ, sys.stdout))
        self._whole = options["full"] or context.display.verbose

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` when there is nothing to show."""
        project = project_of(self._context)
        store = self._options["store"]
        if store is None:
            return self._show(find_run(self._word, self._context, project), project)
        from vally_command_inspect_runs.store import open_store

        with tempfile.TemporaryDirectory(prefix="vally-show-") as directory, open_store(store, self._context) as opened:
            return self._show(opened.export(self._word, Path(directory).resolve()), project)

    def _show(self, run: StoredRun, project: Project) -> int:
        parts = [read_part(part.results, self._shown(part.results)) for part in run.parts]
        if not any(trials.entries for trials in parts):
            raise nothing_recorded(run, parts, self._shown(run.parts[0].results if run.is_file else run.path))
        chosen = [(trials, self._choice.of(trials)) for trials in parts]
        if self._options["output"] == "json":
            _print_records(chosen)
            return 0
        if not any(entries for _, entries in chosen):
            if self._choice.failed and any(_without_failed(self._choice).of(trials) for trials in parts):
                self._print(["no trial failed"])
                return 0
            raise self._choice.nothing(parts)
        with paged(self._context.environ):
            self._text(run, chosen, project)
        return 0

    def _text(self, run: StoredRun, chosen: Chosen, project: Project) -> None:
        count = sum(len(entries) for _, entries in chosen)
        part = "events" if self._options["events"] else "diff" if self._options["diff"] else None
        single = self._choice.selects and (count == 1 or self._choice.trial is not None)
        if single or part is not None:
            self._trials(chosen, part)
        else:
            self._report(run, chosen, project)

    def _trials(self, chosen: Chosen, part: str | None) -> None:
        layout = TrialLayout(
            width=report_width(sys.stdout, self._context.environ), style=self._style, whole=self._whole, part=part
        )
        is_first = True
        for trials, entries in chosen:
            for entry, record in trials.records(in_plan_order(trials, entries)):
                result, warning = load_whole(record, entry, trials.path.parent)
                if warning:
                    print_warning(warning)
                if result is None:
                    continue
                lines = layout.lines(result, trials.verdict_of(entry), trials.path.parent)
                self._print(lines if is_first else _after_blank(lines))
                is_first = False
        if is_first:
            raise VallyError("none of the selected trials can be read", code="bad-record")

    def _print(self, lines: Iterator[str] | Sequence[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.write(fit_glyphs(report_block(text, self._context.environ), sys.stdout))
        sys.stdout.flush()

    def _report(self, run: StoredRun, chosen: Chosen, project: Project) -> None:
        host = self._context.host(project)
        reporters = [item for item in host.records("reporter").values() if isinstance(item, ReporterSpec)]
        able = sorted((item for item in reporters if item.shows_stored_runs), key=lambda item: (item.order, item.name))
        if not able:
            raise VallyError(
                "no reporter that shows stored runs is installed",
                hints=("see 'vally plugins list --kind reporter'", "or select one trial, or use --output json"),
            )
        for (trials, entries), part in zip(chosen, run.parts, strict=True):
            if not entries:
                continue
            if part.label is not None:
                self._print([self._style.paint(f"── {name_line(part.label)} ──", "bold")])
            replay = Replay(trials, self._settings(run, trials))
            replay.tell(host.create(able[0]), entries if self._choice.selects else None)
            if part.label is not None:
                self._print([""])
        self._print(self._closing(run, host))

    def _settings(self, run: StoredRun, trials: StoredTrials) -> ReplaySettings:
        display = self._context.display
        stop_reason = None
        if trials.summary is None:
            running = is_being_written(trials.path.parent) or is_being_written(run.path)
            stop_reason = "running" if running else "incomplete"
            self._unfinished(run, trials, running=running)
        return ReplaySettings(
            run_dir=trials.path.parent,
            run_dir_display=self._shown(trials.path.parent),
            environ=self._context.environ,
            run_id=run_id(run) or "",
            stop_reason=stop_reason,
            options=RunOptions(
                verbose=self._whole,
                quiet=display.quiet,
                progress="none",
                color_stdout=self._style.color,
            ),
        )

    def _unfinished(self, run: StoredRun, trials: StoredTrials, *, running: bool) -> None:
        items = run.manifest().get("items")
        planned = f" of {len(items)} planned" if isinstance(items, list) else ""
        state = "the run goes on" if running else "the run was ended before its summary was written"
        print_warning(f"{self._shown(trials.path)}: {state}; {len(trials.entries)}{planned} trials are recorded")

    def _closing(self, run: StoredRun, host: PluginHost) -> list[str]:
        if run.is_file:
            return []
        rows = list(saved_files(host, run.path))
        width = max((len(label) for label, _ in rows), default=0)
        lines = [f"  {label:<{width}} → {one_line(self._shown(path))}" for label, path in rows]
        quiet = self._context.display.quiet
        shown = ["Saved artifacts", *lines] if rows and not quiet else []
        return [*shown, f"Output directory: {one_line(self._shown(run.path))}"]

    def _shown(self, path: Path) -> str:
        return shown_path(path, self._context.cwd)


def project_of(context: CliContext) -> Project:
    """The project of the current directory; raises `SpecError` when its file is broken."""
    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    if any(item.level == "error" for item in project.diagnostics):
        raise SpecError("the project file cannot be used", diagnostics=project.diagnostics)
    return project


def shown_path(path: Path, base: Path) -> str:
    """How reports name a path: relative to a directory when below it, else absolute."""
    relative = Path(os.path.relpath(path, base)).as_posix()
    return path.as_posix() if relative.startswith("../") else relative


def read_part(path: Path, shown: str) -> StoredTrials:
    """The trials of a file, with a warning for each line that is no record. Raises `VallyError`."""
    try:
        trials = read_trials(path)
    except OSError as error:
        raise VallyError(f"cannot be read: {error.strerror or error}", where=shown) from error
    for text in problem_lines(trials.problems, shown):
        print_warning(text)
    return trials


def nothing_recorded(run: StoredRun, parts: Sequence[StoredTrials], shown: str) -> VallyError:
    """The error that a run has no trial, with the likely reason."""
    if any(is_being_written(path) for path in (run.path, *(trials.path.parent for trials in parts))):
        return VallyError("no trial has ended yet", where=shown, hints=("the run goes on; look again later",))
    others = sum(trials.others for trials in parts)
    if any(trials.problems for trials in parts):
        hint = "its lines are no records"
    elif others:
        hint = f"{others} records of other kinds are in it"
    elif run.is_experiment and read_json(run.path / "experiment-summary.json"):
        hint = "nothing was run: no stimulus was left for it"
    else:
        hint = "the run was ended before a trial was recorded"
    return VallyError("holds no trial records", code="no-trial", where=shown, hints=(hint,))


def _without_failed(choice: TrialChoice) -> TrialChoice:
    return TrialChoice(stimulus=choice.stimulus, trial=choice.trial, model=choice.model, variant=choice.variant)


def _after_blank(lines: Iterator[str]) -> Iterator[str]:
    yield ""
    yield from lines


def _print_records(chosen: Chosen) -> None:
    """The records as one JSON array, a line each."""
    separator = "[\n"
    for trials, entries in chosen:
        for _, record in trials.records(entries):
            write_machine_output(separator + record_line(record).decode().rstrip("\n"))
            separator = ",\n"
    write_machine_output("[]\n" if separator == "[\n" else "\n]\n")
