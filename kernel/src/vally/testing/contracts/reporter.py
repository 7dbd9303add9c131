"""The contract of reporters."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.testing.contracts.case import Case
from vally.testing.hosts import plugin_host
from vally.testing.trajectories import event, trajectory
from vally.testing.trials import stimulus, trial_item

if TYPE_CHECKING:
    from vally.model.results import TrialResult
    from vally.records import ReporterSpec

TIMESTAMP = "2026-01-02T03:04:05.678Z"
HOSTILE = "\x1b[31mred\x1b[0m \x00\x07 ::error::not a command\n::warning::neither"
LARGE = "evidence " * 120_000


def reporter_contract(
    factory: ReporterSpec | Callable[[], Any], *, flags: Mapping[str, Any] | None = None, output: str = "text"
) -> list[Case]:
    """Cases every reporter passes; `flags` are the options that `ReporterSpec.option` names, `output` is `--output`."""
    runs = {
        "order": [_passed(0), _failed(1)],
        "error": [_errored(0), _passed(1)],
        "cancelled": [_passed(0), _skipped(1)],
        "no-results": [],
        "ungraded": [_ungraded(0)],
        "large-evidence": [_failed(0, evidence=LARGE)],
        "control-characters": [_failed(0, evidence=HOSTILE, said=HOSTILE), _errored(1, message=HOSTILE)],
    }
    subject = _Subject(factory, dict(flags or {}), output)
    return [Case(name, _reports, subject, name, results) for name, results in runs.items()]


class _Subject:
    """The reporter under contract."""

    def __init__(self, factory: ReporterSpec | Callable[[], Any], flags: Mapping[str, Any], output: str) -> None:
        self._factory = factory
        self.flags = flags
        self.output = output

    def create(self) -> Any:
        from vally.records import ReporterSpec

        if isinstance(self._factory, ReporterSpec):
            return plugin_host(self._factory).create(self._factory)
        return self._factory()


async def _reports(subject: _Subject, name: str, results: Sequence[TrialResult], directory: Path) -> None:
    from vally.run.calling import invoke

    run_dir = directory / "run"
    run_dir.mkdir()
    events = list(_events(subject, name, results, run_dir))
    before = [_data(item) for _, item in events]
    reporter, returned = subject.create(), []
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        for method, item in events:
            _record(item, run_dir)
            call = getattr(reporter, method, None)
            if call is not None:
                returned.append(await invoke(call, item))
    assert [_data(item) for _, item in events] == before, "the reporter changed what it was given"
    for text in (stdout.getvalue(), stderr.getvalue()):
        assert "\x1b" not in text, "an escape sequence reached the terminal"
    artifacts = returned[-1] if returned and isinstance(returned[-1], Mapping) else {}
    for label, path in artifacts.items():
        assert Path(path).exists(), f"artifact '{label}' does not exist: {path}"
        if Path(path).is_file():
            assert b"\x1b" not in Path(path).read_bytes(), f"an escape sequence is in {path}"
    outside = [path.name for path in directory.iterdir() if path != run_dir]
    assert not outside, f"written outside the run directory: {outside}"


def _data(item: Any) -> str:
    # What a reporter could change is the models; everything else is frozen.
    model = getattr(item, "result", None) or getattr(item, "summary", None)
    return "" if model is None else str(model.model_dump_json())


def _record(item: Any, run_dir: Path) -> None:
    # As in a run, a record is on disk before a reporter sees it.
    from vally.model.jsonio import record_line
    from vally.run.reporting import RunComplete, TrialDone

    record = item.result if isinstance(item, TrialDone) else item.summary if isinstance(item, RunComplete) else None
    with (run_dir / "results.jsonl").open("ab") as file:
        file.write(b"" if record is None else record_line(record))


def _events(subject: _Subject, name: str, results: Sequence[TrialResult], run_dir: Path) -> Iterable[tuple[str, Any]]:
    from vally.model.evalspec import Diagnostic
    from vally.run import reporting

    planned = _planned(len(results))
    yield "on_run_start", _run_start(subject, planned, len(results), run_dir)
    finding = Diagnostic(code="no-graders", level="warning", message="stimulus has no grader and will not be scored")
    yield "on_diagnostics", reporting.Diagnostics(diagnostics=(finding,))
    for index, result in enumerate(results):
        item = trial_item(run_dir.parent, stimulus(name=result.stimulus), trial_index=index)
        if result.status != "skipped":
            yield "on_trial_start", reporting.TrialStart(item=item)
            for phase in ("preparing", "running", "capturing", "grading"):
                yield "on_trial_phase", reporting.TrialPhase(item_id=item.item_id, phase=phase)
        passed = None if result.grade_result is None else result.grade_result.passed
        done = reporting.TrialDone(item=item, result=result, passed=passed, completed=index + 1, total=len(results))
        yield "on_trial_result", done
    summary = _summary(name, results)
    for part in summary.evals:
        yield "on_eval_complete", reporting.EvalComplete(eval=planned, summary=part)
    yield (
        "on_run_complete",
        reporting.RunComplete(
            summary=summary,
            status=summary.status,
            run_dir=run_dir,
            run_dir_display="run",
            artifacts={"results": run_dir / "results.jsonl"},
        ),
    )


def _planned(trials: int) -> Any:
    from vally.run.reporting import PlannedEval, PlannedStimulus

    return PlannedEval(
        index=0,
        name="contract",
        eval_file_path="eval.yaml",
        variant="main",
        model="default-model",
        executor="scripted",
        judge_model="scripted-model",
        threshold=0.5,
        stimuli=(PlannedStimulus(name="stimulus", line=3, grader_count=1, trials=trials),),
    )


def _run_start(subject: _Subject, planned: Any, total: int, run_dir: Path) -> Any:
    from vally.run.reporting import RunOptions, RunStart

    output: Any = subject.output
    return RunStart(
        run_id="contract",
        evals=(planned,) if total else (),
        total_items=total,
        workers=2,
        version="1.2.3",
        run_dir=run_dir,
        run_dir_display="run",
        started_at=TIMESTAMP,
        options=RunOptions(output=output, flags=subject.flags),
    )


def _summary(name: str, results: Sequence[TrialResult]) -> Any:
    from vally.model.results import EvalSummary, RunSummary, Totals

    passed = sum(bool(item.grade_result and item.grade_result.passed) for item in results)
    totals = Totals(
        trials=len(results),
        passed=passed,
        failed=sum(bool(item.grade_result and not item.grade_result.passed) for item in results),
        errors=sum(item.status == "error" for item in results),
        skipped=sum(item.status == "skipped" for item in results),
    )
    part = EvalSummary(
        name="contract",
        eval_file_path="eval.yaml",
        passed=passed == len(results),
        stimuli_run=1,
        stimuli_total=1,
        reason=f"{passed}/{len(results)} trials passed",
    )
    return RunSummary(
        run_id="contract",
        status="cancelled" if name == "cancelled" else "completed",
        passed=part.passed,
        partial=name == "cancelled",
        had_execution_errors=totals.errors > 0,
        started_at=TIMESTAMP,
        completed_at=TIMESTAMP,
        totals=totals,
        evals=[part] if results else [],
    )


def _result(index: int, status: Any, **fields: Any) -> TrialResult:
    from vally.model.results import TrialResult

    return TrialResult(
        run_id="contract",
        item_id=f"eval.yaml::main::default-model::stimulus::trial-{index}",
        eval_name="contract",
        eval_file_path="eval.yaml",
        stimulus="stimulus",
        trial_index=index,
        total_trials=2,
        status=status,
        duration_ms=1234,
        started_at=TIMESTAMP,
        **fields,
    )


def _graded(index: int, passed: bool, evidence: str, said: str) -> TrialResult:
    from vally.model.results import GraderResult

    detail = GraderResult.verdict(passed, evidence, name="check", grader_type="check")
    whole = GraderResult.verdict(passed, f"{int(passed)}/1 graders passed", name="trajectory-grade", details=[detail])
    made = trajectory(event("assistant_message", content=said), event("turn_end", turn_id="0"))
    return _result(index, "success", grade_result=whole, trajectory=made)


def _passed(index: int) -> TrialResult:
    return _graded(index, True, "as wanted", "done")


def _failed(index: int, evidence: str = "not as wanted", said: str = "done") -> TrialResult:
    return _graded(index, False, evidence, said)


def _ungraded(index: int) -> TrialResult:
    return _result(index, "success", trajectory=trajectory(event("assistant_message", content="done")))


def _errored(index: int, message: str = "the provider is down") -> TrialResult:
    from vally.model.results import ErrorInfo

    info = ErrorInfo(message=message, code="provider-error", retryable=True)
    return _result(index, "error", error=message, error_info=info)


def _skipped(index: int) -> TrialResult:
    return _result(index, "skipped", skip_reason="cancelled")
