"""The dialect `gemini`: `gemini --output-format stream-json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vally_executor_command.dialects.jsonl import JsonLines, Responses, count, mapping, status_code, string
from vally_executor_command.dialects.parsed import TurnOutput
from vally_executor_command.dialects.usage import usage_data

_STATUS = re.compile(r'"code"\s*:\s*([45]\d\d)\b')
_TURN_LIMIT = re.compile(r"turn limit|max(imum)? (session )?turns", re.IGNORECASE)


class GeminiLines(JsonLines):
    """Answers come in pieces that are joined; a response ends after the results of its calls."""

    def __init__(self, output: TurnOutput) -> None:
        super().__init__(output)
        self._responses = Responses(self)
        self._pieces: list[str] = []
        self._said_at: str | None = None
        self._tools: dict[str, str] = {}

    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object."""
        at = string(line.get("timestamp"))
        if type_ != "message":
            self._say()
        match type_:
            case "init":
                self.session_id = string(line.get("session_id"))
            case "message":
                self._message(line, at)
            case "tool_use":
                self._call(line, at)
            case "tool_result":
                self._tool_result(line, at)
            case "result":
                self.ended()
                self._result(line, at)
            case _:
                self.custom(type_, line, at=at)

    def close(self) -> None:
        """Say what is left; the response is complete when the agent ended in order."""
        self._say()
        if self.output.complete:
            self._responses.end()

    def _message(self, line: Mapping[str, Any], at: str | None) -> None:
        text = string(line.get("content"))
        if line.get("role") != "assistant" or text is None:
            # The prompt comes back as the agent got it.
            return
        if line.get("delta") is not True:
            self._say()
        if not self._pieces:
            self._said_at = at
        self._pieces.append(text)
        if line.get("delta") is not True:
            self._say()

    def _say(self) -> None:
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._responses.content(self._said_at)
            self.add("assistant_message", {"content": text}, at=self._said_at)

    def _call(self, line: Mapping[str, Any], at: str | None) -> None:
        name, call_id = string(line.get("tool_name")) or "", string(line.get("tool_id"))
        if call_id is not None:
            self._tools[call_id] = name
        self._responses.content(at)
        facts = {"toolName": name, "toolCallId": call_id, "arguments": line.get("parameters")}
        self.add("tool_call", facts, at=at)

    def _tool_result(self, line: Mapping[str, Any], at: str | None) -> None:
        call_id, error = string(line.get("tool_id")), mapping(line.get("error"))
        success = line.get("status") == "success"
        output = line.get("output")
        facts = {
            "toolName": self._tools.get(call_id or ""),
            "toolCallId": call_id,
            "success": success,
            "result": output if success else string(error.get("message")) or output,
            "errorCode": string(error.get("type")),
        }
        self._responses.answered()
        self.add("tool_result", facts, at=at)

    def _result(self, line: Mapping[str, Any], at: str | None) -> None:
        failed = line.get("status") == "error"
        if not failed:
            self._responses.end(at)
        for model, stats in mapping(mapping(line.get("stats")).get("models")).items():
            counts = mapping(stats)
            data = usage_data(
                model,
                input_tokens=count(counts.get("input_tokens")),
                output_tokens=count(counts.get("output_tokens")),
                cache_read=count(counts.get("cached")),
            )
            if data["inputTokens"] or data["outputTokens"]:
                self.add("token_usage", data, at=at)
        if failed:
            self._failed(mapping(line.get("error")))

    def _failed(self, error: Mapping[str, Any]) -> None:
        message = string(error.get("message")) or ""
        if _TURN_LIMIT.search(f"{error.get('type')} {message}"):
            self.end_reason = "budget"
            return
        found = _STATUS.search(message)
        self.fail(message, status_code(int(found[1])) if found else None)
