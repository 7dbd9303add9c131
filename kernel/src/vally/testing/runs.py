"""A run as reporters see it, without anything that runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.testing.trajectories import event, trajectory
from vally.testing.trials import stimulus, trial_item

if TYPE_CHECKING:
    from vally.model.evalspec import Scoring
    from vally.model.results import GraderResult, RunSummary, TrialResult
    from vally.run.reporting import PlannedEval
    from vally.run.trial import TrialItem

STARTED_AT = "2026-01-02T03:04:05.678Z"


def trial_result(name: str = "stimulus", *graders: GraderResult, **fields: Any) -> TrialResult:
    """The result of a trial of the stimulus `name`, with the grade that follows from its graders.

    Unless `fields` say otherwise it is the first and only trial of its stimulus in the eval `scripted`, took 1,234 ms
    and, when it succeeded, has a trajectory of one turn.
    """
    from vally.model.results import TrialResult

    facts: dict[str, Any] = {
        "run_id": "scripted",
        "eval_name": "scripted",
        "eval_file_path": "eval.yaml",
        "variant": "main",
        "model": "default-model",
        "stimulus": name,
        "trial_index": 0,
        "total_trials": 1,
        "status": "success",
        "duration_ms": 1234,
        "started_at": STARTED_AT,
        **fields,
    }
    if facts["status"] == "success":
        said = event("assistant_message", content="done")
        facts.setdefault("trajectory", trajectory(said, event("turn_end", turn_id="0")))
        facts.setdefault("grade_result", _grade(name, graders))
    where = (facts["eval_file_path"], facts["variant"], facts["model"], name)
    facts.setdefault("item_id", "::".join([*where, f"trial-{facts['trial_index']}"]))
    return TrialResult(**facts)


def _grade(name: str, graders: Sequence[GraderResult]) -> GraderResult | None:
    from vally.model.evalspec import GraderEntry
    from vally.run.scoring import aggregate_grade

    if not graders:
        return None
    entries = [GraderEntry(type=grader.grader_type or grader.name) for grader in graders]
    return aggregate_grade(graders, entries, stimulus_name=name, trajectory_id="", timestamp=STARTED_AT)


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """What a reporter wrote and named in a run."""

    stdout: str
    stderr: str
    artifacts: Mapping[str, Path]


class ScriptedRun:
    """The events of a run that has the given results, in their order.

    The plan follows from the results, and the summary too. As in a run, each record is in `run_dir/results.jsonl` of
    `directory` before its event is made. `options` are those of `RunOptions`.
    """

    def __init__(
        self,
        directory: Path,
        results: Sequence[TrialResult],
        *,
        threshold: float | None = None,
        pass_rate: float | None = None,
        skills: Sequence[str] = (),
        prompt: str = "Do it.",
        stop_reason: str | None = None,
        environ: Mapping[str, str] | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> None:
        from vally.model.evalspec import Scoring
        from vally.run.reporting import RunOptions

        self.run_dir = directory / "run"
        self.results = list(results)
        self.environ = dict(environ or {})
        self.options = RunOptions(**options)
        self.backend = backend
        self._stop_reason = stop_reason
        self._scoring = Scoring(threshold=threshold, pass_rate=pass_rate)
        self._prompt = prompt
        self.evals = _planned(self.results, self._scoring, tuple(skills), directory)

    def events(self) -> Iterator[tuple[str, Any]]:
        """Pairs of the name of a method and its event."""
        from vally.model.evalspec import Diagnostic
        from vally.run import reporting

        self.run_dir.mkdir(parents=True)
        yield "on_run_start", self._run_start()
        finding = Diagnostic(code="no-graders", level="warning", message="a finding")
        yield "on_diagnostics", reporting.Diagnostics(diagnostics=(finding,))
        tally = self._tally()
        left = {planned.index: sum(part.trials for part in planned.stimuli) for planned in self.evals}
        for number, result in enumerate(self.results, start=1):
            yield from self._trial(result, number)
            planned = self._eval_of(result)
            tally.add(self._facts(result))
            left[planned.index] -= 1
            if not left[planned.index]:
                yield (
                    "on_eval_complete",
                    reporting.EvalComplete(eval=planned, summary=tally.eval_summary(planned.index)),
                )
        yield "on_run_complete", self._run_complete(self._summary(tally))

    def play(self, reporter: Any, *, stdout: Any = None, stderr: Any = None) -> PlayedRun:
        """Send the events to a reporter and gather what it writes; `stdout` and `stderr` replace the streams."""
        out, err = stdout or _captured(), stderr or _captured()
        returned: Any = None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for method, item in self.events():
                call = getattr(reporter, method, None)
                returned = None if call is None else _finished(call(item))
        return PlayedRun(_text(out), _text(err), dict(returned or {}))

    def _run_start(self) -> Any:
        from vally.run.reporting import RunStart

        return RunStart(
            run_id="scripted",
            evals=self.evals,
            total_items=len(self.results),
            workers=2,
            backend=self.backend,
            version="1.2.3",
            run_dir=self.run_dir,
            run_dir_display="run",
            started_at=STARTED_AT,
            options=self.options,
            environ=self.environ,
        )

    def _trial(self, result: TrialResult, number: int) -> Iterator[tuple[str, Any]]:
        from vally.run import reporting

        item = self._item(result)
        if result.status != "skipped":
            yield "on_trial_start", reporting.TrialStart(item=item)
            for phase in ("preparing", "running", "capturing", "grading"):
                yield "on_trial_phase", reporting.TrialPhase(item_id=item.item_id, phase=phase)
        passed = self._facts(result).passed
        line = self._write(result)
        done = reporting.TrialDone(
            item=item, result=result, line=line, passed=passed, completed=number, total=len(self.results)
        )
        yield "on_trial_result", done

    def _item(self, result: TrialResult) -> TrialItem:
        model = None if result.model == "default-model" else result.model
        return trial_item(
            self.run_dir.parent,
            stimulus(self._prompt, name=result.stimulus),
            run_id=result.run_id,
            item_id=result.item_id,
            eval_name=result.eval_name,
            eval_file_path=result.eval_file_path,
            eval_index=self._eval_of(result).index,
            variant=result.variant,
            model=model,
            trial_index=result.trial_index,
            total_trials=result.total_trials,
            scoring=self._scoring,
        )

    def _run_complete(self, summary: RunSummary) -> Any:
        from vally.run.reporting import RunComplete

        return RunComplete(
            summary=summary,
            line=self._write(summary),
            status=summary.status,
            run_dir=self.run_dir,
            run_dir_display="run",
            artifacts={"JSONL": self.run_dir / "results.jsonl"},
        )

    def _write(self, record: Any) -> bytes:
        from vally.model.jsonio import record_line

        line = record_line(record)
        with (self.run_dir / "results.jsonl").open("ab") as file:
            file.write(line)
        return line

    def _eval_of(self, result: TrialResult) -> PlannedEval:
        return next(planned for planned in self.evals if _key(planned) == _key(result))

    def _facts(self, result: TrialResult) -> Any:
        from vally.run.verdicts import TrialFacts

        return TrialFacts.from_result(result, self._scoring.threshold, eval_index=self._eval_of(result).index)

    def _tally(self) -> Any:
        from vally.run.summary import RunTally

        return RunTally(self.evals, graded=not self.options.skip_grade)

    def _summary(self, tally: Any) -> RunSummary:
        cancelled = self._stop_reason in ("interrupted", "terminated")
        summary: RunSummary = tally.run_summary(
            run_id="scripted",
            started_at=STARTED_AT,
            completed_at=STARTED_AT,
            duration_ms=sum(result.duration_ms for result in self.results),
            status="cancelled" if cancelled else "completed",
            stop_reason=self._stop_reason,
        )
        return summary


def _key(item: Any) -> tuple[str, str, str]:
    return item.eval_file_path, item.variant, item.model


def _planned(
    results: Sequence[TrialResult], scoring: Scoring, skills: tuple[str, ...], directory: Path
) -> tuple[PlannedEval, ...]:
    from vally.run.reporting import PlannedEval

    groups: dict[tuple[str, str, str], list[TrialResult]] = {}
    for result in results:
        groups.setdefault(_key(result), []).append(result)
    return tuple(
        PlannedEval(
            index=index,
            name=group[0].eval_name,
            eval_file_path=path,
            variant=variant,
            model=model,
            executor="scripted",
            judge_model="scripted-model",
            threshold=scoring.threshold,
            stimuli=tuple(_planned_stimuli(group)),
            skills=skills,
            source=directory / path,
            pass_rate=scoring.pass_rate,
        )
        for index, ((path, variant, model), group) in enumerate(groups.items())
    )


def _planned_stimuli(results: Sequence[TrialResult]) -> Iterator[Any]:
    from vally.run.reporting import PlannedStimulus

    names = list(dict.fromkeys(result.stimulus for result in results))
    for position, name in enumerate(names):
        trials = [result for result in results if result.stimulus == name]
        # A trial without a result says nothing about the graders that its stimulus has.
        graders = [1 if trial.status != "success" else _grader_count(trial) for trial in trials]
        yield PlannedStimulus(
            name=name, line=3 + position, grader_count=max(graders), trials=max(trial.total_trials for trial in trials)
        )


def _grader_count(result: TrialResult) -> int:
    return len(result.grade_result.details or ()) if result.grade_result else 0


def _finished(value: Any) -> Any:
    import inspect

    if not inspect.isawaitable(value):
        return value
    import anyio

    async def wait() -> Any:
        return await value

    return anyio.run(wait)


def _captured() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="", write_through=True)


def _text(stream: Any) -> str:
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if isinstance(buffer, io.BytesIO):
        return buffer.getvalue().decode(stream.encoding, "backslashreplace")
    return str(stream.getvalue()) if hasattr(stream, "getvalue") else ""
