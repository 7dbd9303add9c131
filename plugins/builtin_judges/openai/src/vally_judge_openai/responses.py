"""A conversation by responses."""

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


class ResponsesConversation(EndpointConversation[Endpoint]):
    """Input items so far; implements `JudgeConversation`. Nothing is stored at the endpoint."""

    def __init__(
        self, request: JudgeRequest, provider: ProviderConfig, endpoint: Endpoint, parameters: OptionalParameters
    ) -> None:
        super().__init__(request, provider, endpoint, parameters)
        self._items: list[Mapping[str, Any]] = [{"role": "user", "content": request.user_message}]
        self._output: list[Mapping[str, Any]] = []

    async def ask(self) -> JudgeAnswer:
        """Send the items so far; raises `EndpointError`."""
        effort = self._request.reasoning_effort
        optional: dict[str, Any] = {
            "temperature": 0,
            "reasoning": None if effort is None else {"effort": effort},
            "store": False,
        }
        if self._as_json:
            optional["strict"] = is_strict(self._request.tool.parameters) or None
        else:
            optional["tool_choice"] = {"type": "function", "name": self._request.tool.name}
        body = await self._parameters.send(self._model, optional, lambda sent: self._endpoint.respond(self._body(sent)))
        return self._read(body)

    def _body(self, optional: Mapping[str, Any]) -> dict[str, Any]:
        tool = self._request.tool
        sent = {name: value for name, value in optional.items() if name != "strict"}
        common = {"model": self._model, "instructions": self._system, "input": self._items, **sent}
        if self._as_json:
            schema = {"name": tool.name, "schema": dict(tool.parameters), "strict": "strict" in optional}
            return {**common, "text": {"format": {"type": "json_schema", **schema}}}
        function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {**common, "tools": [{"type": "function", **function, "strict": False}]}

    def _read(self, body: Mapping[str, Any]) -> JudgeAnswer:
        self._output = mappings(body.get("output"))
        reason = mapping(body.get("incomplete_details")).get("reason")
        return replace(self.spent(body), calls=self._calls(complete=reason is None), problem=self._problem(reason))

    def spent(self, body: Mapping[str, Any]) -> JudgeAnswer:
        """What an answer cost, whatever it says."""
        usage = body.get("usage")
        return JudgeAnswer(usage=tokens(usage, "input_tokens", "output_tokens"), cost=cost(usage, self._provider.type))

    def _function_calls(self) -> list[Mapping[str, Any]]:
        return [] if self._as_json else [item for item in self._output if item.get("type") == "function_call"]

    def _text(self, kind: str, key: str) -> str:
        parts = [part for item in self._output for part in mappings(item.get("content")) if part.get("type") == kind]
        return "".join(str(part.get(key) or "") for part in parts)

    def _calls(self, *, complete: bool) -> tuple[SubmittedCall, ...]:
        if not self._as_json:
            name = self._request.tool.name
            return tuple(call_of(item.get("name"), item.get("arguments"), name) for item in self._function_calls())
        text = self._text("output_text", "text")
        return (submitted_call(text),) if complete and text.strip() else ()

    def _problem(self, reason: object) -> str:
        if reason == "max_output_tokens":
            return CUT_OFF
        if reason == "content_filter":
            return FILTERED
        refusal = self._text("refusal", "refusal")
        if refusal:
            return f"it is a refusal: {refusal[:200]}"
        return "it is empty" if self._as_json else f"it has no call of {self._request.tool.name}"

    def remind(self, problems: Sequence[str]) -> None:
        """Append the last answer and what was wrong with it."""
        texts = [judge_reminder(self._request.tool.name, problem, as_json=self._as_json) for problem in problems]
        said = self._text("output_text", "text")
        if said:
            self._items.append({"role": "assistant", "content": said})
        calls = self._function_calls()
        for call, text in zip(calls, texts, strict=True) if calls else ():
            # Items without an id stand for themselves; one with an id would need the reasoning that led to it.
            echoed = {key: call.get(key) for key in ("type", "call_id", "name", "arguments")}
            self._items.append(echoed)
            self._items.append({"type": "function_call_output", "call_id": call.get("call_id"), "output": text})
        if not calls:
            self._items.append({"role": "user", "content": texts[0]})
