"""Which dialect a path speaks, and how each reads and writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vally.testing.mock_llm import chat, gemini, messages, responses
from vally.testing.mock_llm.conversation import Answer, ModelRequest, Rendering

_GEMINI = re.compile(r"/models/([^/]+):(generateContent|streamGenerateContent|countTokens)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way of asking for an answer, or, with `counts`, for the number of tokens of a question.

    `as_events` says that a stream consists of server-sent events and not of one JSON list.
    """

    read: Callable[[Mapping[str, Any]], ModelRequest]
    render: Callable[[Answer, ModelRequest], Rendering]
    error: Callable[[int, str], dict[str, Any]]
    counts: str | None = None
    as_events: bool = True


_CHAT = Dialect(read=chat.read, render=chat.render, error=chat.error)
_RESPONSES = Dialect(read=responses.read, render=responses.render, error=chat.error)
_MESSAGES = Dialect(read=messages.read, render=messages.render, error=messages.error)
_COUNT = Dialect(read=messages.read, render=messages.render, error=messages.error, counts="input_tokens")


def dialect_of(path: str, query: Mapping[str, list[str]]) -> Dialect | None:
    """The dialect of a POST to a path; None when no dialect has it."""
    endings = {
        "/chat/completions": _CHAT,
        "/responses": _RESPONSES,
        "/messages": _MESSAGES,
        "/messages/count_tokens": _COUNT,
    }
    for ending, dialect in endings.items():
        if path.endswith(ending):
            return dialect
    match = _GEMINI.search(path)
    return None if match is None else _gemini(match[1], match[2], query)


def _gemini(model: str, method: str, query: Mapping[str, list[str]]) -> Dialect:
    def read(body: Mapping[str, Any]) -> ModelRequest:
        inner = body.get("generateContentRequest")
        asked = inner if method == "countTokens" and isinstance(inner, Mapping) else body
        return gemini.read(asked, model=model, stream=method == "streamGenerateContent")

    return Dialect(
        read=read,
        render=gemini.render,
        error=gemini.error,
        counts="totalTokens" if method == "countTokens" else None,
        as_events=query.get("alt") == ["sse"],
    )


def models_body(path: str) -> dict[str, Any]:
    """The list of models, for a GET of a path that ends with `/models`."""
    if "/v1beta" in path:
        model = {
            "name": "models/mock-model",
            "displayName": "Mock model",
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
        return {"models": [model]}
    listed = {
        "id": "mock-model",
        "object": "model",
        "type": "model",
        "display_name": "Mock model",
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "nobody",
    }
    return {"object": "list", "data": [listed], "has_more": False, "first_id": "mock-model", "last_id": "mock-model"}
