"""A stored run told to a reporter as if it happened again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    EvalComplete,
    ExecutorChoice,
    GraderEntry,
    JudgeSettings,
    PlannedEval,
    PlannedStimulus,
    RecordError,
    RunComplete,
    RunOptions,
    RunStart,
    RunSummary,
    RunTally,
    Scoring,
    Stimulus,
    TrialDone,
    TrialFacts,
    TrialItem,
    __version__,
    dump_record,
    load_trial_result,
    print_warning,
    record_line,
    timestamp,
)

if TYPE_CHECKING:
    from vally import StoredTrials, TrialEntry, TrialResult

Plan = tuple[str, str, str]


@dataclass(slots=True)
class _Eval:
    """One eval x variant x model: its trials by stimulus, in the order in which they are planned as far as known."""

    name: str
    threshold: float | None = None
    pass_rate: float | None = None
    stimuli: dict[str, list[TrialEntry]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What the file does not tell a reporter. `run_id` and `stop_reason` are for a run without a summary."""

    run_dir: Path
    run_dir_display: str
    options: RunOptions
    environ: Mapping[str, str]
    run_id: str = ""
    stop_reason: str | None = None
    warn: Callable[[str], None] = print_warning


class Replay:
    """The events of a stored run: `evals` as planned, results one at a time, and the summary."""

    def __init__(self, trials: StoredTrials, settings: ReplaySettings) -> None:
        self._trials = trials
        self._settings = settings
        self._plans = _plans(trials)
        self._indexes = {plan: index for index, plan in enumerate(self._plans)}
        self.evals = tuple(_planned(index, plan, found) for index, (plan, found) in enumerate(self._plans.items()))
        self._total = sum(part.trials for planned in self.evals for part in planned.stimuli)

    def tell(self, reporter: Any, entries: Iterable[TrialEntry] | None = None) -> RunSummary:
        """Give a reporter everything, or the results of the stimuli of some trials only; returns the summary."""
        chosen = None if entries is None else {(entry.plan, entry.stimulus) for entry in entries}
        _call(reporter, "on_run_start", self._start())
        tally = self.tally()
        for done in self._results(chosen):
            if self._trials.summary is None:
                tally.add(
                    TrialFacts.from_result(done.result, done.item.scoring.threshold, eval_index=done.item.eval_index)
                )
            _call(reporter, "on_trial_result", done)
        summary = self._trials.summary or self._summary(tally)
        for planned, item in zip(self.evals, summary.evals, strict=False):
            _call(reporter, "on_eval_complete", EvalComplete(eval=planned, summary=item))
        _call(reporter, "on_run_complete", self._complete(summary))
        return summary

    def tally(self) -> RunTally:
        """An empty tally of the planned trials."""
        return RunTally(self.evals)

    def place(self, entry: TrialEntry) -> tuple[int, float | None]:
        """The index of the eval of a trial, and its threshold."""
        planned = self.evals[self._indexes[entry.plan]]
        return planned.index, planned.threshold

    def _start(self) -> RunStart:
        summary, settings = self._trials.summary, self._settings
        return RunStart(
            run_id=summary.run_id if summary else settings.run_id,
            evals=self.evals,
            total_items=self._total,
            workers=1,
            backend=self._backend(),
            version=__version__,
            run_dir=settings.run_dir,
            run_dir_display=settings.run_dir_display,
            started_at=summary.started_at if summary else timestamp(),
            options=settings.options,
            environ=settings.environ,
        )

    def _backend(self) -> str | None:
        """Where the first trial ran."""
        for found in self._plans.values():
            for entries in found.stimuli.values():
                for _, record in self._trials.records(entries[:1]):
                    backend = record.get("backend")
                    return backend if isinstance(backend, str) else None
        return None

    def _results(self, chosen: set[tuple[Plan, str]] | None) -> Iterator[TrialDone]:
        completed = 0
        for index, (plan, found) in enumerate(self._plans.items()):
            for name, entries in found.stimuli.items():
                if chosen is not None and (plan, name) not in chosen:
                    continue
                for entry, record in self._trials.records(sorted(entries, key=lambda entry: entry.trial_index)):
                    try:
                        result = load_result(record, entry)
                    except RecordError as error:
                        self._settings.warn(f"stimulus '{name}': {error.message} [bad-record]")
                        continue
                    completed += 1
                    verdict = entry.verdict(found.threshold)
                    yield TrialDone(
                        item=self._item(index, found, result, len(entries)),
                        result=result,
                        line=b"",
                        passed={"pass": True, "fail": False}.get(verdict),
                        completed=completed,
                        total=self._total,
                    )

    def _item(self, index: int, found: _Eval, result: TrialResult, total: int) -> TrialItem:
        base = self._settings.run_dir
        prompt = result.trajectory.stimulus.get("prompt") if result.trajectory else None
        text = prompt if isinstance(prompt, str) else ""
        details = (result.grade_result.details if result.grade_result else None) or []
        executor = result.trajectory.metadata.get("executor") if result.trajectory else None
        return TrialItem(
            run_id=result.run_id,
            item_id=result.item_id,
            eval_name=result.eval_name,
            eval_file_path=result.eval_file_path,
            eval_index=index,
            variant=result.variant,
            model=result.model,
            stimulus=Stimulus(
                name=result.stimulus,
                prompt=text,
                turns=(text,),
                graders=tuple(GraderEntry(type=item.grader_type or item.name) for item in details),
            ),
            trial_index=result.trial_index,
            total_trials=max(result.total_trials, total),
            executor=ExecutorChoice(name=executor if isinstance(executor, str) else ""),
            spec_dir=base,
            spec_path=base / result.eval_file_path,
            project_root=base,
            scoring=Scoring(threshold=found.threshold, pass_rate=found.pass_rate),
            judge=JudgeSettings(model=""),
            timeout_ms=0,
            work_dir=base,
        )

    def _summary(self, tally: RunTally) -> RunSummary:
        settings = self._settings
        return tally.run_summary(
            run_id=settings.run_id, started_at="", completed_at="", stop_reason=settings.stop_reason or "incomplete"
        )

    def _complete(self, summary: RunSummary) -> RunComplete:
        return RunComplete(
            summary=summary,
            line=record_line(dump_record(summary)),
            status=summary.status,
            run_dir=self._settings.run_dir,
            run_dir_display=self._settings.run_dir_display,
        )


def in_plan_order(trials: StoredTrials, entries: Iterable[TrialEntry]) -> list[TrialEntry]:
    """Trials of a file in the order of the plan; in the file they stand as they ended."""
    wanted = set(entries)
    return [
        entry
        for found in _plans(trials).values()
        for part in found.stimuli.values()
        for entry in sorted(part, key=lambda entry: entry.trial_index)
        if entry in wanted
    ]


def load_result(record: dict[str, Any], entry: TrialEntry) -> TrialResult:
    """A record as a result without events, which no report shows; names and numbers are those of the entry."""
    trajectory = record.get("trajectory")
    if isinstance(trajectory, dict):
        record = {**record, "trajectory": {**trajectory, "events": []}}
    return load_trial_result(record, trial_index=entry.trial_index, total_trials=entry.total)


def _plans(trials: StoredTrials) -> dict[Plan, _Eval]:
    """Evals and stimuli in the order of the summary, then of the file."""
    plans: dict[Plan, _Eval] = {}
    for item in trials.summary.evals if trials.summary else ():
        found = _Eval(item.name, item.threshold, item.required_pass_rate)
        for stimulus in (item.stats or {}).get("stimuli") or ():
            if isinstance(stimulus, Mapping) and isinstance(stimulus.get("name"), str):
                found.stimuli[stimulus["name"]] = []
        plans[(item.eval_file_path, item.variant, item.model)] = found
    scoring = trials.scoring()
    for entry in trials.entries:
        if entry.plan not in plans:
            limits = scoring.get(entry.plan)
            given = (limits.threshold, limits.pass_rate) if limits else ()
            plans[entry.plan] = _Eval(entry.eval_name, *given)
        found = plans[entry.plan]
        found.stimuli.setdefault(entry.stimulus, []).append(entry)
    return plans


def _planned(index: int, plan: Plan, found: _Eval) -> PlannedEval:
    eval_file, variant, model = plan
    return PlannedEval(
        index=index,
        name=found.name,
        eval_file_path=eval_file,
        variant=variant,
        model=model,
        executor="",
        judge_model="",
        threshold=found.threshold,
        pass_rate=found.pass_rate,
        stimuli=tuple(
            PlannedStimulus(
                name=name,
                line=None,
                grader_count=max((entry.graders for entry in entries), default=0),
                trials=max((max(entry.total, len(entries)) for entry in entries), default=0),
            )
            for name, entries in found.stimuli.items()
        ),
    )


def _call(reporter: Any, name: str, event: object) -> None:
    method = getattr(reporter, name, None)
    if method is not None:
        method(event)
