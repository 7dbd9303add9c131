"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterOption, ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide spans for tracing systems."""
    yield ReporterSpec(
        name="otel",
        summary="OpenTelemetry spans, to otel-spans.jsonl or to an OTLP endpoint",
        factory="vally_reporter_otel.reporter:OtelReporter",
        order=50,
        options=(
            ReporterOption(
                name="otlp-endpoint", help="Send spans to this OTLP/HTTP endpoint instead of a file", value="url"
            ),
        ),
        kinds=("eval", "experiment"),
        files={"Spans": "otel-spans.jsonl"},
        notice_s=1.0,
    )
