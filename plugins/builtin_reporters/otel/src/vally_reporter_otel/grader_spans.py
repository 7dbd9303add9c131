"""Spans of graders, and of the judges that they asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind

from vally_reporter_otel.spans import NANO_PER_MS, Attributes, Interval, SpanFactory

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

    from vally import GraderResult


def grader_spans(
    factory: SpanFactory, item_id: str, graders: Sequence[GraderResult], parent: SpanContext, interval: Interval
) -> Iterator[ReadableSpan]:
    """A span per grader of a trial, nested ones that asked a judge below it; times of graders are not recorded."""
    for index, grader in enumerate(graders):
        context = factory.context("grader", item_id, str(index))
        yield _grader_span(factory, grader, context, parent, interval)
        for number, judged in enumerate(_judged(grader)):
            judge = factory.context("judge", item_id, str(index), str(number))
            yield _judge_span(factory, judged, judge, context, interval)


def _grader_span(
    factory: SpanFactory, grader: GraderResult, context: SpanContext, parent: SpanContext, interval: Interval
) -> ReadableSpan:
    failed = grader.status == "error"
    error = (grader.metadata or {}).get("error")
    attributes: Attributes = {
        "vally.grader_type": grader.grader_type,
        "vally.passed": None if failed else grader.passed,
        "vally.score": None if failed else float(grader.score),
        "error.type": str(error.get("kind")) if failed and isinstance(error, dict) else None,
    }
    return factory.span(f"vally.grade {grader.name}", context, parent, interval, attributes, failed=failed)


def _judged(grader: GraderResult) -> Iterator[GraderResult]:
    """The results that a judge gave: the grader's own, or those of a panel."""
    if grader.kind == "llm" and isinstance((grader.metadata or {}).get("model"), str):
        yield grader
        return
    for detail in grader.details or ():
        yield from _judged(detail)


def _judge_span(
    factory: SpanFactory, judged: GraderResult, context: SpanContext, parent: SpanContext, interval: Interval
) -> ReadableSpan:
    metadata: dict[str, Any] = judged.metadata or {}
    usage = metadata.get("tokenUsage")
    tokens: dict[str, Any] = usage if isinstance(usage, dict) else {}
    latency = metadata.get("latencyMs")
    end = interval[1]
    if isinstance(latency, (int, float)) and 0 <= latency < 1e9:
        end = min(end, interval[0] + round(latency) * NANO_PER_MS)
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": metadata["model"],
        "gen_ai.usage.input_tokens": tokens.get("inputTokens"),
        "gen_ai.usage.output_tokens": tokens.get("outputTokens"),
    }
    failed = judged.status == "error"
    name = f"chat {metadata['model']}"
    return factory.span(name, context, parent, (interval[0], end), attributes, kind=SpanKind.CLIENT, failed=failed)
