"""The contract of reporters."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.testing.contracts.case import Case
from vally.testing.hosts import plugin_host
from vally.testing.runs import ScriptedRun, trial_result
from vally.testing.trajectories import event, trajectory

if TYPE_CHECKING:
    from vally.model.results import TrialResult
    from vally.records import ReporterSpec

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
        "ungraded": [_result(0, total_trials=1)],
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

    stop_reason = "interrupted" if name == "cancelled" else None
    options: dict[str, Any] = {"output": subject.output, "flags": subject.flags}
    run = ScriptedRun(directory, results, threshold=0.5, stop_reason=stop_reason, **options)
    events = list(run.events())
    before = [_data(item) for _, item in events]
    reporter, returned = subject.create(), []
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        for method, item in events:
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
    outside = [path.name for path in directory.iterdir() if path != run.run_dir]
    assert not outside, f"written outside the run directory: {outside}"


def _data(item: Any) -> str:
    # What a reporter could change is the models; everything else is frozen.
    model = getattr(item, "result", None) or getattr(item, "summary", None)
    return "" if model is None else str(model.model_dump_json())


def _result(index: int, *graders: Any, **fields: Any) -> TrialResult:
    return trial_result("stimulus", *graders, **{"trial_index": index, "total_trials": 2, **fields})


def _graded(index: int, passed: bool, evidence: str, said: str) -> TrialResult:
    from vally.model.results import GraderResult

    grader = GraderResult.verdict(passed, evidence, name="check", grader_type="check")
    made = trajectory(event("assistant_message", content=said), event("turn_end", turn_id="0"))
    return _result(index, grader, trajectory=made)


def _passed(index: int) -> TrialResult:
    return _graded(index, True, "as wanted", "done")


def _failed(index: int, evidence: str = "not as wanted", said: str = "done") -> TrialResult:
    return _graded(index, False, evidence, said)


def _errored(index: int, message: str = "the provider is down") -> TrialResult:
    from vally.model.results import ErrorInfo

    info = ErrorInfo(message=message, code="provider-error", retryable=True)
    return _result(index, status="error", error=message, error_info=info)


def _skipped(index: int) -> TrialResult:
    return _result(index, status="skipped", skip_reason="cancelled")
