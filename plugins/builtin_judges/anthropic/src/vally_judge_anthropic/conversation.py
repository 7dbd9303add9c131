"""A conversation by messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vally import (
    CallTokens,
    EndpointConversation,
    JudgeAnswer,
    JudgeRequest,
    OptionalParameters,
    ProviderConfig,
    SubmittedCall,
    judge_reminder,
    submitted_call,
)
from vally_judge_anthropic.endpoint import Endpoint

MAX_TOKENS = 16_384
FEWER_TOKENS = 4_096
"""What models with a small limit accept."""
_INPUT_KEYS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_PROBLEMS = {
    "max_tokens": "it was cut off at the limit of output tokens",
    "model_context_window_exceeded": "it was cut off at the end of the context window",
    "refusal": "it is a refusal",
}


class MessagesConversation(EndpointConversation[Endpoint]):
    """Messages so far; implements `JudgeConversation`."""

    def __init__(
        self, request: JudgeRequest, provider: ProviderConfig, endpoint: Endpoint, parameters: OptionalParameters
    ) -> None:
        super().__init__(request, provider, endpoint, parameters)
        self._messages: list[Mapping[str, Any]] = [{"role": "user", "content": request.user_message}]
        self._blocks: list[Mapping[str, Any]] = []

    async def ask(self) -> JudgeAnswer:
        """Send the messages so far; raises `EndpointError`."""
        forced = None if self._as_json else {"type": "tool", "name": self._request.tool.name}
        optional: dict[str, Any] = {
            "temperature": 0,
            "effort": self._request.reasoning_effort,
            "max_tokens": MAX_TOKENS,
            "tool_choice": forced,
        }
        body = await self._parameters.send(self._model, optional, lambda sent: self._endpoint.message(self._body(sent)))
        return self._read(body)

    def _body(self, optional: Mapping[str, Any]) -> dict[str, Any]:
        tool = self._request.tool
        sent = {name: value for name, value in optional.items() if name != "effort"}
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": FEWER_TOKENS,
            "system": self._system,
            "messages": self._messages,
            **sent,
        }
        config: dict[str, Any] = {"effort": optional["effort"]} if "effort" in optional else {}
        if self._as_json:
            config["format"] = {"type": "json_schema", "schema": dict(tool.parameters)}
        else:
            schema = dict(tool.parameters)
            body["tools"] = [{"name": tool.name, "description": tool.description, "input_schema": schema}]
        return {**body, "output_config": config} if config else body

    def _read(self, body: Mapping[str, Any]) -> JudgeAnswer:
        content = body.get("content")
        self._blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
        stop = body.get("stop_reason")
        return JudgeAnswer(calls=self._calls(stop), problem=self._problem(stop), usage=_tokens(body.get("usage")))

    def _uses(self) -> list[Mapping[str, Any]]:
        return [] if self._as_json else [block for block in self._blocks if block.get("type") == "tool_use"]

    def _text(self) -> str:
        return "".join(str(block.get("text") or "") for block in self._blocks if block.get("type") == "text")

    def _calls(self, stop: object) -> tuple[SubmittedCall, ...]:
        if self._as_json:
            complete = stop not in _PROBLEMS and self._text().strip()
            return (submitted_call(self._text()),) if complete else ()
        return tuple(self._call(block) for block in self._uses())

    def _call(self, block: Mapping[str, Any]) -> SubmittedCall:
        if block.get("name") != self._request.tool.name:
            return SubmittedCall(problem=f"there is no tool {str(block.get('name'))[:60]!r}")
        return submitted_call(block.get("input"))

    def _problem(self, stop: object) -> str:
        missing = "it is empty" if self._as_json else f"it has no call of {self._request.tool.name}"
        return _PROBLEMS.get(str(stop), missing)

    def remind(self, problems: Sequence[str]) -> None:
        """Append the last answer and what was wrong with it."""
        texts = [judge_reminder(self._request.tool.name, problem, as_json=self._as_json) for problem in problems]
        if self._blocks:
            # Thoughts go back as well: they are part of the answer that a call belongs to.
            self._messages.append({"role": "assistant", "content": [_echo(block) for block in self._blocks]})
        uses = self._uses()
        if uses:
            results = [
                {"type": "tool_result", "tool_use_id": block.get("id"), "content": text, "is_error": True}
                for block, text in zip(uses, texts, strict=True)
            ]
            self._messages.append({"role": "user", "content": results})
        else:
            self._messages.append({"role": "user", "content": texts[0]})


def _echo(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as the endpoint takes it back; blank text it would refuse."""
    if block.get("type") == "text" and not str(block.get("text") or "").strip():
        return {"type": "text", "text": "(no text)"}
    if block.get("type") == "tool_use":
        given = block.get("input")
        echoed = {key: block.get(key) for key in ("type", "id", "name")}
        return {**echoed, "input": given if isinstance(given, Mapping) else {}}
    return dict(block)


def _tokens(usage: object) -> CallTokens | None:
    """Token counts, cached input included, when the endpoint told any."""
    counts: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
    found = [_count(counts.get(key)) for key in (*_INPUT_KEYS, "output_tokens")]
    if not any(number is not None for number in found):
        return None
    *inputs, output = found
    return CallTokens(input_tokens=sum(number or 0 for number in inputs), output_tokens=output or 0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
