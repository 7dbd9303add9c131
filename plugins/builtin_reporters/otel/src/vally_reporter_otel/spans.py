"""Spans of one trace, as the SDK has them, and their encoding as OTLP/JSON."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from vally import parse_timestamp

Interval = tuple[int, int]
Attributes = Mapping[str, str | bool | int | float | None]
NANO_PER_MS = 1_000_000


class SpanFactory:
    """Makes the spans of a run; times are nanoseconds since 1970, ids follow from the run and from keys."""

    def __init__(self, run_id: str, version: str) -> None:
        self._run_id = run_id
        self._trace_id = trace_id(run_id)
        # Not `Resource.create`, which adds what it finds in the environment.
        self._resource = Resource({"service.name": "vally", "service.version": version or "unknown"})
        self._scope = InstrumentationScope("vally", version or None)

    def context(self, *key: str) -> SpanContext:
        """The identity of the span with that key."""
        digest = hashlib.sha256("\0".join((self._run_id, *key)).encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8], "big") or 1
        return SpanContext(self._trace_id, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def span(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        interval: Interval,
        attributes: Attributes,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: bool = False,
    ) -> ReadableSpan:
        """One finished span; attributes without a value are left out."""
        return ReadableSpan(
            name=name,
            context=context,
            parent=parent,
            resource=self._resource,
            instrumentation_scope=self._scope,
            attributes={key: value for key, value in attributes.items() if value is not None},
            kind=kind,
            status=Status(StatusCode.ERROR) if failed else Status(StatusCode.UNSET),
            start_time=interval[0],
            end_time=max(interval),
        )


def nanoseconds(text: str | None) -> int | None:
    """A timestamp as nanoseconds since 1970."""
    moment = parse_timestamp(text)
    return None if moment is None else round(moment.timestamp() * 1000) * NANO_PER_MS


def trace_id(run_id: str) -> int:
    """The id of the trace of a run: the number of a UUID, else from a hash."""
    try:
        number = uuid.UUID(run_id).int
    except ValueError:
        number = int.from_bytes(hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).digest()[:16], "big")
    return number or 1


def encoded(spans: Sequence[ReadableSpan]) -> bytes:
    """One `ExportTraceServiceRequest` on one line."""
    request = encode_spans(spans).to_dict()
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Some readers take these for line ends.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode("utf-8", "replace")
