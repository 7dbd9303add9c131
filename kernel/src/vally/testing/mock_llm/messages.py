"""Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vally.testing.mock_llm.conversation import (
    Answer,
    Event,
    ModelRequest,
    Rendering,
    Turn,
    group_of,
    halves,
    mappings,
    pieces,
    text_of,
)


def read(body: Mapping[str, Any]) -> ModelRequest:
    """A request body in no dialect."""
    system = text_of(body.get("system"))
    return ModelRequest(
        model=str(body.get("model") or "mock-model"),
        turns=(*([Turn("system", system)] if system else []), *_turns(body)),
        tools={str(tool.get("name")): "function" for tool in mappings(body.get("tools"))},
        wants_json=_wants_json(body),
        stream=bool(body.get("stream")),
    )


def _wants_json(body: Mapping[str, Any]) -> bool:
    config = body.get("output_config")
    wanted = config.get("format") if isinstance(config, Mapping) else body.get("output_format")
    return isinstance(wanted, Mapping) and wanted.get("type") == "json_schema"


def _turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    for message in mappings(body.get("messages")):
        content = message.get("content")
        blocks = mappings(content)
        if message.get("role") == "assistant":
            calls = [block for block in blocks if block.get("type") == "tool_use"]
            yield Turn("assistant", text_of(content), group_of(calls[0].get("id")) if calls else None)
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results:
            yield Turn("tool", "\n".join(text_of(block.get("content")) for block in results))
        rest = content if isinstance(content, str) else [block for block in blocks if block not in results]
        if rest or not results:
            yield Turn("system" if message.get("role") == "system" else "user", text_of(rest))


def render(answer: Answer, _: ModelRequest) -> Rendering:
    """An answer as a message and as its events."""
    blocks = list(_blocks(answer))
    body = {
        "id": f"msg_{answer.group}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": blocks,
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(answer),
    }
    return Rendering(body=body, events=tuple(_events(answer, body, blocks)))


def _blocks(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.reasoning is not None:
        yield {"type": "thinking", "thinking": answer.reasoning, "signature": "bW9jaw=="}
    if answer.text is not None:
        yield {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.input_tokens - answer.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.cached_tokens,
        "output_tokens": answer.output_tokens,
    }


def _events(answer: Answer, body: Mapping[str, Any], blocks: list[dict[str, Any]]) -> Iterator[Event]:
    started = {**body, "content": [], "stop_reason": None, "usage": {**_usage(answer), "output_tokens": 1}}
    yield _event("message_start", message=started)
    yield _event("ping")
    for index, block in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": answer.output_tokens})
    yield _event("message_stop")


def _event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def _empty(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as it is announced, before its content comes."""
    content = {"thinking": "", "signature": "", "text": "", "input": {}}
    return {key: content.get(key, value) for key, value in block.items()}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    else:
        for piece in halves(json.dumps(block["input"], ensure_ascii=False)):
            yield {"type": "input_json_delta", "partial_json": piece}


def error(status: int, message: str) -> dict[str, Any]:
    """The body of a failure."""
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
