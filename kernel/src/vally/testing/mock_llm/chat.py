"""Chat completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from vally.testing.mock_llm.conversation import (
    Answer,
    AnswerCall,
    Event,
    ModelRequest,
    Rendering,
    Role,
    Turn,
    group_of,
    halves,
    mappings,
    pieces,
    text_of,
)

_ROLES: Mapping[object, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def read(body: Mapping[str, Any]) -> ModelRequest:
    """A request body in no dialect."""
    options = body.get("stream_options")
    return ModelRequest(
        model=str(body.get("model") or "mock-model"),
        turns=tuple(_turn(message) for message in mappings(body.get("messages"))),
        tools=dict(_tools(body)),
        wants_json=_wants_json(body.get("response_format")),
        stream=bool(body.get("stream")),
        with_usage=isinstance(options, Mapping) and bool(options.get("include_usage")),
    )


def _turn(message: Mapping[str, Any]) -> Turn:
    calls = mappings(message.get("tool_calls"))
    group = group_of(calls[0].get("id")) if calls else None
    return Turn(_ROLES.get(message.get("role"), "user"), text_of(message.get("content")), group)


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for tool in mappings(body.get("tools")):
        kind = str(tool.get("type") or "function")
        inner = tool.get(kind)
        if isinstance(inner, Mapping):
            yield str(inner.get("name")), kind


def _wants_json(wanted: object) -> bool:
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_schema", "json_object")


def render(answer: Answer, request: ModelRequest) -> Rendering:
    """An answer as a completion and as its chunks."""
    base = {"id": f"chatcmpl-{answer.group}", "created": int(time.time()), "model": answer.model}
    finish = "tool_calls" if answer.calls else "stop"
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    body = {**base, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}
    return Rendering(body=body, events=tuple(_events(answer, request, base, finish)))


def _events(answer: Answer, request: ModelRequest, base: Mapping[str, Any], finish: str) -> Iterator[Event]:
    head = {**base, "object": "chat.completion.chunk"}

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.reasoning or ""):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(answer.text or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        whole = _call(call)
        arguments = whole["function"]["arguments"]
        yield chunk({"tool_calls": [{**whole, "index": index, "function": {"name": call.name, "arguments": ""}}]})
        for piece in halves(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish)
    if request.with_usage:
        yield None, {**head, "choices": [], "usage": _usage(answer)}
    yield None, "[DONE]"


def _call(call: AnswerCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.total_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def error(status: int, message: str) -> dict[str, Any]:
    """The body of a failure; also that of the responses dialect."""
    kinds = {
        401: ("invalid_request_error", "invalid_api_key"),
        403: ("invalid_request_error", "forbidden"),
        404: ("invalid_request_error", "not_found"),
        429: ("requests", "rate_limit_exceeded"),
    }
    kind, code = kinds.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
