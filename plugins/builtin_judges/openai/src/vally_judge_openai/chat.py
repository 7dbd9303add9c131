"""A conversation by chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vally import (
    EndpointConversation,
    JudgeAnswer,
    JudgeRequest,
    OptionalParameters,
    ProviderConfig,
    SubmittedCall,
    judge_reminder,
    submitted_call,
)
from vally_judge_openai.answers import CUT_OFF, FILTERED, call_of, cost, mapping, mappings, tokens
from vally_judge_openai.endpoint import Endpoint
from vally_judge_openai.schemas import is_strict


class ChatConversation(EndpointConversation[Endpoint]):
    """Messages so far; implements `JudgeConversation`."""

    def __init__(
        self, request: JudgeRequest, provider: ProviderConfig, endpoint: Endpoint, parameters: OptionalParameters
    ) -> None:
        super().__init__(request, provider, endpoint, parameters)
        self._messages: list[Mapping[str, Any]] = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": request.user_message},
        ]
        self._last: Mapping[str, Any] = {}

    async def ask(self) -> JudgeAnswer:
        """Send the messages so far; raises `EndpointError`."""
        optional: dict[str, Any] = {
            "temperature": 0,
            "seed": self._request.seed,
            "reasoning_effort": self._request.reasoning_effort,
        }
        if self._as_json:
            optional["strict"] = is_strict(self._request.tool.parameters) or None
        else:
            optional["tool_choice"] = {"type": "function", "function": {"name": self._request.tool.name}}
        body = await self._parameters.send(
            self._model, optional, lambda sent: self._endpoint.complete(self._body(sent))
        )
        return self._read(body)

    def _body(self, optional: Mapping[str, Any]) -> dict[str, Any]:
        tool = self._request.tool
        sent = {name: value for name, value in optional.items() if name != "strict"}
        common = {"model": self._model, "messages": self._messages, **sent}
        if self._as_json:
            schema = {"name": tool.name, "schema": dict(tool.parameters), "strict": "strict" in optional}
            return {**common, "response_format": {"type": "json_schema", "json_schema": schema}}
        function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {**common, "tools": [{"type": "function", "function": function}]}

    def _read(self, body: Mapping[str, Any]) -> JudgeAnswer:
        choice = next(iter(mappings(body.get("choices"))), {})
        self._last = mapping(choice.get("message"))
        finish = choice.get("finish_reason")
        return replace(self.spent(body), calls=self._calls(finish), problem=self._problem(finish))

    def spent(self, body: Mapping[str, Any]) -> JudgeAnswer:
        """What an answer cost, whatever it says."""
        usage = body.get("usage")
        return JudgeAnswer(
            usage=tokens(usage, "prompt_tokens", "completion_tokens"), cost=cost(usage, self._provider.type)
        )

    def _calls(self, finish: object) -> tuple[SubmittedCall, ...]:
        if not self._as_json:
            functions = [mapping(call.get("function")) for call in mappings(self._last.get("tool_calls"))]
            name = self._request.tool.name
            return tuple(call_of(item.get("name"), item.get("arguments"), name) for item in functions)
        text = self._last.get("content")
        complete = isinstance(text, str) and text.strip() and finish not in ("length", "content_filter")
        return (submitted_call(text),) if complete else ()

    def _problem(self, finish: object) -> str:
        if finish == "length":
            return CUT_OFF
        if finish == "content_filter":
            return FILTERED
        refusal = self._last.get("refusal")
        if isinstance(refusal, str) and refusal:
            return f"it is a refusal: {refusal[:200]}"
        return "it is empty" if self._as_json else f"it has no call of {self._request.tool.name}"

    def remind(self, problems: Sequence[str]) -> None:
        """Append the last answer and what was wrong with it."""
        texts = [judge_reminder(self._request.tool.name, problem, as_json=self._as_json) for problem in problems]
        calls = [] if self._as_json else mappings(self._last.get("tool_calls"))
        content = self._last.get("content")
        answer: dict[str, Any] = {"role": "assistant", "content": content if isinstance(content, str) else ""}
        if calls:
            answer["tool_calls"] = [_echo(call) for call in calls]
        self._messages.append(answer)
        if calls:
            for call, text in zip(calls, texts, strict=True):
                self._messages.append({"role": "tool", "tool_call_id": call.get("id"), "content": text})
        else:
            self._messages.append({"role": "user", "content": texts[0]})


def _echo(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the endpoint takes it back: arguments that are no JSON would make it refuse the conversation."""
    function = mapping(call.get("function"))
    arguments = function.get("arguments")
    readable = isinstance(arguments, str) and submitted_call(arguments).problem is None
    echoed = {"name": str(function.get("name")), "arguments": arguments if readable else "{}"}
    return {"id": call.get("id"), "type": "function", "function": echoed}
