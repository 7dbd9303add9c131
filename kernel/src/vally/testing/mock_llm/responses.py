"""Responses."""

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
    Turn,
    group_of,
    halves,
    mappings,
    pieces,
    text_of,
)
from vally.testing.mock_llm.script import ScriptError

_NAMESPACE = "namespace"
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "computer_call", "mcp_call"}


def read(body: Mapping[str, Any]) -> ModelRequest:
    """A request body in no dialect; raises `ScriptError` for a request that continues a stored response."""
    if body.get("previous_response_id"):
        raise ScriptError("previous_response_id is not supported, because nothing is stored; send the whole input")
    text = body.get("text")
    wanted = text.get("format") if isinstance(text, Mapping) else None
    return ModelRequest(
        model=str(body.get("model") or "mock-model"),
        turns=(*_instructions(body), *_turns(body.get("input"))),
        tools=dict(_tools(body)),
        wants_json=isinstance(wanted, Mapping) and wanted.get("type") in ("json_schema", "json_object"),
        stream=bool(body.get("stream")),
    )


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and types. A tool of a namespace, such as that of an MCP server, goes by `<namespace>__<name>`."""
    for tool in mappings(body.get("tools")):
        name, kind = str(tool.get("name")), str(tool.get("type") or "function")
        yield name, kind
        if kind == _NAMESPACE:
            yield from (
                (f"{name}__{inner.get('name')}", f"{_NAMESPACE} {name}") for inner in mappings(tool.get("tools"))
            )


def _instructions(body: Mapping[str, Any]) -> Iterator[Turn]:
    if isinstance(body.get("instructions"), str):
        yield Turn("system", body["instructions"])


def _turns(given: object) -> Iterator[Turn]:
    if isinstance(given, str):
        yield Turn("user", given)
        return
    answer: Turn | None = None
    for item in mappings(given):
        part = _part_of_answer(item)
        if part is not None:
            # The items of one answer follow each other.
            answer = part if answer is None else Turn("assistant", answer.text + part.text, answer.group or part.group)
            continue
        if answer is not None:
            yield answer
            answer = None
        yield _other(item)
    if answer is not None:
        yield answer


def _part_of_answer(item: Mapping[str, Any]) -> Turn | None:
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") == "assistant":
        return Turn("assistant", text_of(item.get("content")))
    if kind in _CALLS:
        return Turn("assistant", "", group_of(item.get("call_id")))
    return Turn("assistant", "") if kind == "reasoning" else None


def _other(item: Mapping[str, Any]) -> Turn:
    if item.get("type", "message") != "message":
        return Turn("tool", text_of(item.get("output")))
    text = text_of(item.get("content"))
    return Turn("system" if item.get("role") in ("system", "developer") else "user", text)


def render(answer: Answer, _: ModelRequest) -> Rendering:
    """An answer as a response and as its events."""
    output = list(_output(answer))
    body = {**_base(answer), "status": "completed", "output": output, "usage": _usage(answer)}
    return Rendering(body=body, events=tuple(_numbered(_events(body, output))))


def _base(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.group}",
        "object": "response",
        "created_at": int(time.time()),
        "model": answer.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.total_tokens,
    }


def _output(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.reasoning is not None:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        yield {"type": "reasoning", "id": f"rs_{answer.group}", "summary": summary, "status": "completed"}
    if answer.text is not None:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        yield {
            "type": "message",
            "id": f"msg_{answer.group}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    for index, call in enumerate(answer.calls):
        yield _call(call, f"{answer.group}_{index}")


def _call(call: AnswerCall, suffix: str) -> dict[str, Any]:
    item = {"status": "completed", "call_id": call.id, "name": call.name}
    if call.kind == "custom":
        text = call.arguments.get("input")
        given = text if isinstance(text, str) else json.dumps(call.arguments, ensure_ascii=False)
        return {"type": "custom_tool_call", "id": f"ctc_{suffix}", **item, "input": given}
    namespace = call.kind.removeprefix(f"{_NAMESPACE} ")
    if namespace != call.kind:
        item |= {"namespace": namespace, "name": call.name.removeprefix(f"{namespace}__")}
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"type": "function_call", "id": f"fc_{suffix}", **item, "arguments": arguments}


def _numbered(events: Iterator[tuple[str, Mapping[str, Any]]]) -> Iterator[Event]:
    for number, (name, data) in enumerate(events):
        yield name, {"type": name, "sequence_number": number, **data}


def _events(body: Mapping[str, Any], output: list[dict[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    started = {**body, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    parts = {"reasoning": _reasoning, "message": _message}
    for index, item in enumerate(output):
        yield from parts.get(item["type"], _arguments)(index, item)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": body}


def _reasoning(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    where = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    (part,) = item["summary"]
    yield _added(index, {**item, "summary": [], "status": "in_progress"})
    yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
    yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**where, "part": part}


def _message(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    (part,) = item["content"]
    yield _added(index, {**item, "content": [], "status": "in_progress"})
    yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**where, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}


def _arguments(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    custom = item["type"] == "custom_tool_call"
    field = "input" if custom else "arguments"
    name = "response.custom_tool_call_input" if custom else "response.function_call_arguments"
    where = {"item_id": item["id"], "output_index": index}
    yield _added(index, {**item, field: "", "status": "in_progress"})
    for piece in halves(item[field]):
        yield f"{name}.delta", {**where, "delta": piece}
    yield f"{name}.done", {**where, field: item[field], **({} if custom else {"name": item["name"]})}


def _added(index: int, item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return "response.output_item.added", {"output_index": index, "item": item}
