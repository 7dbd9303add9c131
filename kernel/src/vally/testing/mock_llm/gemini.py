"""Gemini."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vally.testing.mock_llm.conversation import (
    Answer,
    Event,
    ModelRequest,
    Rendering,
    Turn,
    group_of,
    mappings,
    pieces,
    text_of,
)


def read(body: Mapping[str, Any], *, model: str, stream: bool) -> ModelRequest:
    """A request body in no dialect; model and way of answering stand in the path."""
    system = body.get("systemInstruction") or body.get("system_instruction")
    text = text_of(system.get("parts")) if isinstance(system, Mapping) else ""
    return ModelRequest(
        model=model,
        turns=(*([Turn("system", text)] if text else []), *_turns(body)),
        tools=dict.fromkeys(_tools(body), "function"),
        wants_json=_wants_json(body.get("generationConfig") or body.get("generation_config")),
        stream=stream,
    )


def _wants_json(config: object) -> bool:
    keys = ("responseSchema", "responseJsonSchema", "response_schema")
    return isinstance(config, Mapping) and any(config.get(key) for key in keys)


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    for tool in mappings(body.get("tools")):
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        yield from (str(item.get("name")) for item in mappings(declared))


def _turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    contents = body.get("contents")
    if isinstance(contents, Mapping):
        contents = [contents]
    for content in mappings(contents):
        parts = mappings(content.get("parts"))
        if content.get("role") == "model":
            calls = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]
            yield Turn("assistant", text_of(parts), group_of(calls[0].get("id")) if calls else None)
        elif any("functionResponse" in part for part in parts):
            yield Turn("tool", text_of(parts))
        else:
            yield Turn("user", text_of(parts))


def render(answer: Answer, _: ModelRequest) -> Rendering:
    """An answer as a response, and as the responses of a stream."""
    texts = [{"text": piece} for piece in pieces(answer.text or "")]
    thoughts = [{"text": piece, "thought": True} for piece in pieces(answer.reasoning or "")]
    calls = [
        {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}} for call in answer.calls
    ]
    whole: list[dict[str, Any]] = []
    if answer.reasoning is not None:
        whole.append({"text": answer.reasoning, "thought": True})
    if answer.text is not None:
        whole.append({"text": answer.text})
    return Rendering(
        body=_response(answer, [*whole, *calls], last=True),
        events=tuple(_events(answer, [*thoughts, *texts, *calls])),
    )


def _events(answer: Answer, parts: list[dict[str, Any]]) -> Iterator[Event]:
    for part in parts[:-1]:
        yield None, _response(answer, [part], last=False)
    yield None, _response(answer, parts[-1:] or [{"text": ""}], last=True)


def _response(answer: Answer, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    response: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": answer.model,
        "responseId": answer.group,
    }
    if last:
        candidate["finishReason"] = "STOP"
        response["usageMetadata"] = {
            "promptTokenCount": answer.input_tokens,
            "cachedContentTokenCount": answer.cached_tokens,
            "candidatesTokenCount": answer.output_tokens,
            "totalTokenCount": answer.total_tokens,
        }
    return response


def error(status: int, message: str) -> dict[str, Any]:
    """The body of a failure."""
    names = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }
    return {"error": {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}}
