"""Tells tracing systems about a run: one trace per run, its spans made from the records of finished trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vally import print_warning

if TYPE_CHECKING:
    from vally import RunComplete, RunStart, TrialDone
    from vally_reporter_otel.trace import Trace

FILE_NAME = "otel-spans.jsonl"
OPTION = "otlp-endpoint"


class Delivery(Protocol):
    """Where requests go."""

    def send(self, body: bytes) -> None:
        """Take one encoded request."""

    def close(self) -> str | None:
        """Finish; returns what went wrong, or None."""


class OtelReporter:
    """Keeps the spans of one trial; everything else is delivered as soon as the next trial is done."""

    def __init__(self) -> None:
        self._start: RunStart | None = None
        self._trace: Trace | None = None
        self._delivery: Delivery | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_trial_result(self, event: TrialDone) -> None:
        """Make the spans of a trial that ran."""
        result = event.result
        if result.status == "skipped" and not result.attempts:
            return
        if self._trace is None:
            self._trace = self._begin()
        self._trace.add_trial(result, event.item.executor.name)
        self._deliver(self._trace.take_former())

    def _begin(self) -> Trace:
        from vally_reporter_otel.trace import Trace

        assert self._start is not None
        return Trace(self._start.run_id, self._start.started_at, self._start.version)

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Deliver the rest with the span of the run, and name the file."""
        if self._trace is None:
            return {}
        self._deliver(self._trace.finish(event.summary))
        assert self._delivery is not None
        problem = self._delivery.close()
        if problem:
            print_warning(problem)
        path = event.run_dir / FILE_NAME
        return {"Spans": path} if path.exists() and not self._endpoint else {}

    @property
    def _endpoint(self) -> str | None:
        assert self._start is not None
        return self._start.options.flags.get(OPTION)

    def _deliver(self, body: bytes | None) -> None:
        if body is None:
            return
        if self._delivery is None:
            self._delivery = self._opened()
        self._delivery.send(body)

    def _opened(self) -> Delivery:
        from vally_reporter_otel.endpoint import EndpointDelivery
        from vally_reporter_otel.file import FileDelivery

        assert self._start is not None
        if self._endpoint:
            return EndpointDelivery(self._endpoint, self._start.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
        return FileDelivery(self._start.run_dir / FILE_NAME)
