"""The dialect `codex`: `codex exec --json`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from vally_executor_command.dialects.jsonl import (
    JsonLines,
    Responses,
    integer,
    mapping,
    result_of,
    status_code,
    string,
)
from vally_executor_command.dialects.parsed import TurnOutput
from vally_executor_command.dialects.usage import counts, since, usage_data

# Codex runs scripts as `/bin/bash -lc '<script>'`.
_SHELL_OPTIONS = ("-c", "-lc")
_STATUS = re.compile(r"\b(?:status|error)[: ]+(?:code )?([45]\d\d)\b", re.IGNORECASE)
# How it words every status from 500 on.
_OVERLOADED = "experiencing high demand"
_KEYS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}
_OF_THE_THREAD = ""
"""Stands for the model, which the stream does not name."""


class CodexLines(JsonLines):
    """Usage is cumulative over the thread. Items of type `error` are warnings; only `error` and `turn.failed` end a
    turn, and an `error` only when nothing follows it."""

    def __init__(self, output: TurnOutput) -> None:
        super().__init__(output)
        self._responses = Responses(self)
        self._called: set[str] = set()

    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object."""
        match type_:
            case "thread.started":
                self.session_id = string(line.get("thread_id"))
            case "turn.started":
                self._responses.content()
            case "item.started" | "item.updated" | "item.completed":
                self._item(mapping(line.get("item")), done=type_ == "item.completed")
            case "turn.completed":
                self.ended()
                self.going_on()
                self._responses.end()
                self._usage(mapping(line.get("usage")))
            case "turn.failed":
                self.ended()
                message = string(mapping(line.get("error")).get("message")) or ""
                self.fail(message, _status(message))
            case "error":
                message = string(line.get("message")) or ""
                self.retrying(message, _status(message))
            case _:
                self.custom(type_, line)

    def close(self) -> None:
        """An error that nothing followed was the end."""
        if self.waiting and self.output.complete:
            self.fail(self.error or "", self.status)

    def _item(self, item: Mapping[str, Any], *, done: bool) -> None:
        kind, text = string(item.get("type")) or "", string(item.get("text"))
        if kind != "error":
            self.going_on()
        match kind:
            case "agent_message" | "reasoning":
                if done and text is not None:
                    self._responses.content()
                    self.add("assistant_message" if kind == "agent_message" else kind, {"content": text})
            case "command_execution":
                self._tool(item, "bash", _shell(string(item.get("command")) or ""), done=done)
            case "mcp_tool_call":
                server, tool = string(item.get("server")) or "", string(item.get("tool")) or ""
                self._tool(item, f"mcp__{server}__{tool}", item.get("arguments"), done=done, server=server)
            case "file_change":
                self._tool(item, "apply_patch", {"changes": item.get("changes")}, done=done)
            case "web_search":
                self._tool(item, "web_search", {"query": item.get("query")}, done=done)
            case _:
                if done:
                    self.custom(kind, {key: value for key, value in item.items() if key != "type"})

    def _tool(
        self, item: Mapping[str, Any], tool: str, arguments: object, *, done: bool, server: str | None = None
    ) -> None:
        call_id = string(item.get("id")) or f"item-{len(self._called)}"
        if call_id not in self._called:
            self._called.add(call_id)
            self._responses.content()
            self.add(
                "tool_call", {"toolName": tool, "toolCallId": call_id, "arguments": arguments, "mcpServer": server}
            )
        if done:
            self._responses.answered()
            self.add("tool_result", {"toolName": tool, "toolCallId": call_id, **_result(item)})

    def _usage(self, usage: Mapping[str, Any]) -> None:
        now = {_OF_THE_THREAD: counts(usage, _KEYS)}
        found = since(now, mapping(self.output.before.get("usage")))[_OF_THE_THREAD]
        self.totals["usage"] = now
        data = usage_data(
            None,
            input_tokens=found["input"],
            output_tokens=found["output"],
            cache_read=found["cache_read"],
            cache_write=found["cache_write"],
            reasoning=found["reasoning"],
        )
        self.add("token_usage", data)


def _result(item: Mapping[str, Any]) -> dict[str, Any]:
    status = string(item.get("status"))
    result = mapping(item.get("result"))
    output: object = item.get("aggregated_output")
    if "content" in result:
        output = result_of(result["content"])
    failed = status not in (None, "completed") or bool(result.get("is_error")) or result.get("isError") is True
    message = string(mapping(item.get("error")).get("message"))
    return {
        "success": not failed and message is None,
        "result": message if message is not None else output,
        "errorCode": status if status == "declined" else None,
        "exitCode": integer(item.get("exit_code")),
    }


def _shell(command: str) -> dict[str, Any]:
    """The script of a shell call, with the whole command line as `argv`."""
    try:
        argv = shlex.split(command)
    except ValueError:
        return {"command": command}
    if len(argv) == 3 and argv[1] in _SHELL_OPTIONS:
        return {"command": argv[2], "argv": argv}
    return {"command": command}


def _status(message: str) -> int | None:
    found = _STATUS.search(message)
    if found is not None:
        return status_code(int(found[1]))
    if _OVERLOADED in message:
        return 500
    return 400 if _is_body(message) else None


def _is_body(message: str) -> bool:
    """Whether it is the body of a response: the agent shows those of status 400 as they are."""
    try:
        return "error" in mapping(json.loads(message))
    except (ValueError, RecursionError):
        return False
