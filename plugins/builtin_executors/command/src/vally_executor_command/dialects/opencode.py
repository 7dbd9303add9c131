"""The dialect `opencode`: `opencode run --format json`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from vally_executor_command.dialects.jsonl import JsonLines, count, integer, mapping, status_code, string
from vally_executor_command.dialects.usage import dollars, usage_data

_STOPS = {"length": "budget", "content-filter": "refused"}
_LATEST_MS = 253_402_300_799_000


class OpencodeLines(JsonLines):
    """An agent turn is a step; one line holds a call and its result."""

    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object."""
        self.session_id = string(line.get("sessionID")) or self.session_id
        part, at = mapping(line.get("part")), _time(line.get("timestamp"))
        match type_:
            case "step_start":
                self.add("turn_start", {}, at=at)
            case "text":
                if text := string(part.get("text")):
                    data = {"content": text, "messageId": string(part.get("messageID"))}
                    self.add("assistant_message", data, at=at)
            case "reasoning":
                if text := string(part.get("text")):
                    self.add("reasoning", {"content": text}, at=at)
            case "tool_use":
                self._tool(part, at)
            case "step_finish":
                self._finish(part, at)
            case "error":
                self._error(mapping(line.get("error")))
            case _:
                self.custom(type_, line, at=at)

    def _tool(self, part: Mapping[str, Any], at: str | None) -> None:
        state, name = mapping(part.get("state")), string(part.get("tool")) or ""
        call_id, time = string(part.get("callID")), mapping(state.get("time"))
        call = {"toolName": name, "toolCallId": call_id, "arguments": state.get("input")}
        self.add("tool_call", call, at=_time(time.get("start")) or at)
        success = state.get("status") == "completed"
        facts = {
            "toolName": name,
            "toolCallId": call_id,
            "success": success,
            "result": state.get("output") if success else string(state.get("error")) or state.get("output"),
            "exitCode": integer(mapping(state.get("metadata")).get("exit")),
        }
        self.add("tool_result", facts, at=_time(time.get("end")) or at)

    def _finish(self, part: Mapping[str, Any], at: str | None) -> None:
        tokens = mapping(part.get("tokens"))
        cache = mapping(tokens.get("cache"))
        read, written = count(cache.get("read")), count(cache.get("write"))
        data = usage_data(
            None,
            input_tokens=count(tokens.get("input")) + read + written,
            output_tokens=count(tokens.get("output")) + count(tokens.get("reasoning")),
            cache_read=read,
            cache_write=written,
            reasoning=count(tokens.get("reasoning")) or None,
            cost=dollars("opencode", part.get("cost")),
        )
        self.add("token_usage", data, at=at)
        self.add("turn_end", {}, at=at)
        self.end_reason = _STOPS.get(str(part.get("reason")))
        if part.get("reason") != "tool-calls":
            self.ended()

    def _error(self, error: Mapping[str, Any]) -> None:
        self.ended()
        data = mapping(error.get("data"))
        message = string(data.get("message")) or string(error.get("message")) or string(error.get("name")) or ""
        if error.get("name") == "MessageOutputLengthError":
            self.end_reason = "budget"
            return
        self.fail(message, status_code(data.get("statusCode")))


def _time(value: object) -> str | None:
    """Milliseconds since 1970 in the form of records."""
    number = integer(value)
    if number is None or not 0 <= number <= _LATEST_MS:
        return None
    return datetime.fromtimestamp(number / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{number % 1000:03d}Z"
