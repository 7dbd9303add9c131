"""The trace of a run: its span, and below it those of trials and their phases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally_reporter_otel.agent_spans import AgentSpans
from vally_reporter_otel.grader_spans import grader_spans
from vally_reporter_otel.spans import NANO_PER_MS, Attributes, Interval, SpanFactory, encoded, nanoseconds

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

    from vally import RunSummary, TrialResult


class Trace:
    """Makes one request per trial; the span of the run goes with that of the last trial, once it is over."""

    def __init__(self, run_id: str, started_at: str, version: str) -> None:
        self._factory = SpanFactory(run_id, version)
        self._run_id = run_id
        self._run = self._factory.context("run")
        self._began = nanoseconds(started_at) or 0
        self._ended = self._began
        self._held: list[list[ReadableSpan]] = []

    def add_trial(self, result: TrialResult, executor: str) -> None:
        """Make the spans of a trial."""
        self._held.append(list(self._trial(result, executor)))

    def take_former(self) -> bytes | None:
        """The request of the trial before the last one, once."""
        return encoded(self._held.pop(0)) if len(self._held) > 1 else None

    def finish(self, summary: RunSummary) -> bytes:
        """The request of the last trial with the span of the run."""
        ended = nanoseconds(summary.completed_at) or self._ended
        attributes: Attributes = {"vally.run_id": self._run_id, "vally.status": summary.status}
        failed = summary.had_execution_errors
        interval = (self._began, max(ended, self._ended))
        run = self._factory.span("vally.run", self._run, None, interval, attributes, failed=failed)
        return encoded([run, *self._held.pop(0)])

    def _trial(self, result: TrialResult, executor: str) -> Iterator[ReadableSpan]:
        context = self._factory.context("trial", result.item_id)
        began = nanoseconds(result.started_at) or self._ended
        whole = (began, began + result.duration_ms * NANO_PER_MS)
        # A run that is continued has trials from before it began.
        self._began, self._ended = min(self._began, whole[0]), max(self._ended, whole[1])
        grade = result.grade_result
        facts: Attributes = {
            "vally.run_id": self._run_id,
            "vally.item_id": result.item_id,
            "vally.eval": result.eval_name,
            "vally.stimulus": result.stimulus,
            "vally.variant": result.variant,
            "vally.trial_index": result.trial_index,
            "vally.status": result.status,
            "vally.score": None if grade is None or grade.status == "error" else float(grade.score),
        }
        failed = result.status == "error"
        code = result.error_info.code if result.error_info else "error"
        errors = {"error.type": code} if failed else {}
        yield self._factory.span("vally.trial", context, self._run, whole, {**facts, **errors}, failed=failed)
        phases = _phases(result, whole)
        parents: dict[str, tuple[SpanContext, Interval]] = {}
        for name, interval in phases.items():
            phase = self._factory.context("phase", result.item_id, name)
            parents[name] = (phase, interval)
            broken = failed and result.error_info is not None and result.error_info.phase == name
            yield self._factory.span(f"vally.{name}", phase, context, interval, facts, failed=broken)
        running, grading = (parents.get(name, (context, whole)) for name in ("running", "grading"))
        if result.trajectory is not None:
            yield from AgentSpans(self._factory, result, executor, *running).spans()
        if grade is not None:
            yield from grader_spans(self._factory, result.item_id, grade.details or [], *grading)


def _phases(result: TrialResult, whole: Interval) -> dict[str, Interval]:
    """Intervals of the phases of the last attempt: one after the other, within the trial."""
    phases = result.phases
    if phases is None:
        return {}
    took = {
        "preparing": phases.setup_ms,
        "running": phases.agent_ms,
        "capturing": phases.capture_ms,
        "grading": phases.grade_ms,
    }
    begin = whole[0]
    if result.attempts and result.attempts > 1:
        # Earlier attempts came first.
        begin = max(begin, whole[1] - sum(took.values()) * NANO_PER_MS)
    intervals = {}
    for name, milliseconds in took.items():
        if milliseconds > 0:
            end = min(begin + milliseconds * NANO_PER_MS, whole[1])
            intervals[name] = (begin, end)
            begin = end
    return intervals
