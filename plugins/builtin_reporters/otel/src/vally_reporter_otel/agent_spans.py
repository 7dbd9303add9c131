"""Spans of an agent, its model calls and tool calls, by the conventions for generative AI; no text is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind

from vally import NO_MODEL
from vally_reporter_otel.spans import Attributes, Interval, SpanFactory, nanoseconds

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

    from vally import Event, TrialResult

_MAX_CALLS = 2_000
"""Model and tool calls of a trial that get a span."""

_NAME_LIMIT = 200


class AgentSpans:
    """The spans below the phase in which an agent runs, whose interval stands in for times that are not recorded."""

    def __init__(
        self, factory: SpanFactory, result: TrialResult, executor: str, parent: SpanContext, interval: Interval
    ) -> None:
        assert result.trajectory is not None
        self._factory = factory
        self._result = result
        self._trajectory = result.trajectory
        self._executor = executor
        self._parent = parent
        self._interval = interval
        self._agent = factory.context("agent", result.item_id)
        self._times = [nanoseconds(event.timestamp) for event in self._trajectory.events]

    def spans(self) -> Iterator[ReadableSpan]:
        """That of the agent, then of its sub-agents, then of all calls."""
        yield self._agent_span()
        subagents = self._subagents()
        for identity, (name, interval) in subagents.items():
            attributes: Attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": name,
                "gen_ai.agent.id": identity,
            }
            context = self._factory.context("agent", self._result.item_id, identity)
            yield self._factory.span(f"invoke_agent {name}", context, self._agent, interval, attributes)
        for number, span in enumerate(self._calls()):
            if number >= _MAX_CALLS:
                return
            yield span

    def _agent_span(self) -> ReadableSpan:
        metadata, metrics = self._trajectory.metadata, self._trajectory.metrics
        usage = metrics.token_usage if metrics else None
        used = metadata.get("model")
        model = used if isinstance(used, str) and used else self._result.model
        session = metadata.get("sessionID")
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._executor,
            "gen_ai.request.model": None if model == NO_MODEL else model,
            "gen_ai.usage.input_tokens": usage.input_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
            "gen_ai.conversation.id": session if isinstance(session, str) and session else self._trajectory.id or None,
        }
        name = f"invoke_agent {self._executor}"
        failed = self._trajectory.end_reason == "error"
        return self._factory.span(name, self._agent, self._parent, self._interval, attributes, failed=failed)

    def _subagents(self) -> dict[str, tuple[str, Interval]]:
        found: dict[str, tuple[str, Interval]] = {}
        for index, event in enumerate(self._trajectory.events):
            if event.agent_id:
                at = self._at(index)
                name, (first, last) = found.get(event.agent_id, (event.agent_name or event.agent_id, (at, at)))
                found[event.agent_id] = (name, (min(first, at), max(last, at)))
        return found

    def _calls(self) -> Iterator[ReadableSpan]:
        results = {
            str(event.data.get("toolCallId")): index
            for index, event in enumerate(self._trajectory.events)
            if event.type == "tool_result"
        }
        before: dict[str | None, int] = {}
        for index, event in enumerate(self._trajectory.events):
            if event.type == "token_usage":
                yield self._model_call(index, event, before.get(event.agent_id, self._interval[0]))
            elif event.type == "tool_call":
                yield self._tool_call(index, event, results.get(str(event.data.get("toolCallId"))))
            before[event.agent_id] = self._at(index)

    def _model_call(self, index: int, event: Event, began: int) -> ReadableSpan:
        model = _name(event.data.get("model"))
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": _count(event.data.get("inputTokens")),
            "gen_ai.usage.output_tokens": _count(event.data.get("outputTokens")),
        }
        interval = (min(began, self._at(index)), self._at(index))
        return self._child(f"chat {model}", index, event, interval, attributes, kind=SpanKind.CLIENT)

    def _tool_call(self, index: int, event: Event, answered: int | None) -> ReadableSpan:
        tool = _name(event.data.get("toolName"))
        data = {} if answered is None else self._trajectory.events[answered].data
        failed = data.get("success") is False
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": str(event.data.get("toolCallId") or "") or None,
            "error.type": str(data.get("errorCode") or "tool_error") if failed else None,
        }
        end = self._interval[1] if answered is None else self._at(answered)
        interval = (self._at(index), max(self._at(index), end))
        return self._child(f"execute_tool {tool}", index, event, interval, attributes, failed=failed)

    def _child(
        self,
        name: str,
        index: int,
        event: Event,
        interval: Interval,
        attributes: Attributes,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: bool = False,
    ) -> ReadableSpan:
        context = self._factory.context("event", self._result.item_id, str(index))
        parent = self._agent
        if event.agent_id:
            parent = self._factory.context("agent", self._result.item_id, event.agent_id)
        return self._factory.span(name, context, parent, interval, attributes, kind=kind, failed=failed)

    def _at(self, index: int) -> int:
        time = self._times[index]
        return self._interval[0] if time is None else time


def _name(value: object) -> str:
    return str(value or "unknown")[:_NAME_LIMIT]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
