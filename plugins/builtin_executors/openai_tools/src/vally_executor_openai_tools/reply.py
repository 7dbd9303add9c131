"""Reading an answer of the endpoint; servers that are merely compatible leave out or misspell much of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer; `cost_usd` where the endpoint tells a price."""

    input: int
    output: int
    cached: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that the model asks for; `arguments` as it wrote them."""

    call_id: str
    name: str
    arguments: Any

    def arguments_value(self) -> Any:
        """The arguments as they are recorded: parsed where that is possible."""
        if not isinstance(self.arguments, str):
            return self.arguments
        try:
            return json.loads(self.arguments.strip() or "{}")
        except (ValueError, RecursionError):
            return self.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. `reasoning_key` is the key under which the endpoint told the reasoning."""

    text: str
    reasoning: str | None
    reasoning_key: str
    refusal: str | None
    calls: tuple[ToolRequest, ...]
    finish_reason: str | None
    usage: Usage | None


def read_reply(body: Mapping[str, Any]) -> Reply | None:
    """The first choice of an answer; None when there is none."""
    choices = body.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = _mapping(choice.get("message"))
    if not message:
        return None
    key = "reasoning" if _text(message.get("reasoning")) else "reasoning_content"
    finish = choice.get("finish_reason")
    return Reply(
        text=_text(message.get("content")),
        reasoning=_text(message.get(key)) or None,
        reasoning_key=key,
        refusal=_text(message.get("refusal")) or None,
        calls=_calls(message.get("tool_calls")),
        finish_reason=finish if isinstance(finish, str) else None,
        usage=_usage(_mapping(body.get("usage"))),
    )


def _calls(value: object) -> tuple[ToolRequest, ...]:
    calls = []
    for item in value if isinstance(value, list) else []:
        function = _mapping(_mapping(item).get("function"))
        call_id = _mapping(item).get("id")
        name = function.get("name")
        calls.append(
            ToolRequest(
                call_id if isinstance(call_id, str) else "",
                name if isinstance(name, str) else "",
                function.get("arguments", ""),
            )
        )
    return tuple(calls)


def _usage(counts: Mapping[str, Any]) -> Usage | None:
    sent, received = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    if sent is None and received is None:
        return None
    cost = counts.get("cost")
    priced = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf")
    return Usage(
        sent or 0,
        received or 0,
        _count(_mapping(counts.get("prompt_tokens_details")).get("cached_tokens")),
        _count(_mapping(counts.get("completion_tokens_details")).get("reasoning_tokens")),
        float(cost) if cost is not None and priced else None,
    )


def _text(value: object) -> str:
    """A text, or the text parts of a list."""
    if isinstance(value, list):
        return "".join(_text(_mapping(part).get("text")) for part in value)
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
