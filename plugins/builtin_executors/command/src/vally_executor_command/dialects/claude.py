"""The dialect `claude`: `claude -p --output-format stream-json --verbose`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vally_executor_command.dialects.jsonl import (
    JsonLines,
    count,
    mapping,
    mappings,
    result_of,
    status_code,
    string,
    text_of,
)
from vally_executor_command.dialects.parsed import TurnOutput
from vally_executor_command.dialects.usage import dollars, price, since, usage_data

_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_MCP_TOOL = re.compile(r"mcp__(?P<server>.+?)__.+")
# Text that Claude Code itself puts where an answer would be, such as "API Error: 400".
_SYNTHETIC = "<synthetic>"
# Estimates and states for a screen.
_FLEETING = frozenset({"thinking_tokens", "status", "session_state_changed"})
_BUDGET = frozenset({"error_max_turns", "error_max_budget_usd"})
_STOPS = {"max_tokens": "budget", "refusal": "refused"}
_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "thinkingTokens")


class ClaudeLines(JsonLines):
    """One agent turn per message id and agent. Usage inside messages is not final, only that of `result` is."""

    def __init__(self, output: TurnOutput) -> None:
        super().__init__(output)
        self._open: dict[str | None, str] = {}
        self._agents: dict[str, str] = {}
        self._answered = False

    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object."""
        match type_:
            case "system":
                self._system(string(line.get("subtype")) or "", line)
            case "assistant":
                self._assistant(line)
            case "user":
                self._user(line)
            case "result":
                self.ended()
                self._result(line)
            case "stream_event":
                pass
            case _:
                self.custom(type_, line)

    def close(self) -> None:
        """What is open is complete when the agent ended in order."""
        if self.output.complete:
            self._end_turns()

    def _system(self, subtype: str, line: Mapping[str, Any]) -> None:
        match subtype:
            case "init":
                self._init(line)
            case "api_retry":
                status = status_code(line.get("error_status"))
                self.retrying(string(line.get("error")) or "the provider refused a request", status)
                self.custom("api_retry", line)
            case "compact_boundary":
                self.add("system", {"eventType": "compaction", **mapping(line.get("compact_metadata"))})
            case _ if subtype not in _FLEETING:
                self.custom(subtype, line)

    def _init(self, line: Mapping[str, Any]) -> None:
        self.session_id = string(line.get("session_id"))
        version = string(line.get("claude_code_version"))
        if version is not None:
            self.metadata["executorVersion"] = version
        servers = mappings(line.get("mcp_servers"))
        if servers:
            self.metadata["mcpServers"] = sorted(str(server.get("name")) for server in servers)
        skills = line.get("skills")
        if isinstance(skills, list):
            self.skills = tuple(str(skill) for skill in skills)
        for server in servers:
            if server.get("status") in ("failed", "needs-auth"):
                reason = string(server.get("error")) or f"its status is {server['status']}"
                self.failed_servers[str(server.get("name"))] = reason

    def _assistant(self, line: Mapping[str, Any]) -> None:
        message, envelope = mapping(line.get("message")), self._envelope(line)
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)
        self._answered = self._answered or envelope["agent_id"] is None
        if message.get("model") == _SYNTHETIC:
            self.custom("synthetic_message", {"text": text_of(blocks)}, **envelope)
            return
        self.going_on()
        self._turn(string(message.get("id")) or string(line.get("uuid")) or "", envelope)
        for block in blocks:
            self._block(block, message, envelope)

    def _turn(self, message_id: str, envelope: Mapping[str, Any]) -> None:
        agent = envelope["agent_id"]
        if self._open.get(agent) == message_id:
            return
        if agent in self._open:
            self.add("turn_end", {}, **envelope)
        self._open[agent] = message_id
        self.add("turn_start", {}, **envelope)

    def _block(self, block: Mapping[str, Any], message: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        match block.get("type"):
            case "text":
                if text := string(block.get("text")):
                    facts = {"messageId": string(message.get("id")), "model": string(message.get("model"))}
                    self.add("assistant_message", {"content": text, **facts}, **envelope)
            case "thinking":
                if text := string(block.get("thinking")):
                    self.add("reasoning", {"content": text}, **envelope)
            case "tool_use" | "server_tool_use":
                self._call(block, envelope)
            case other:
                self.custom(str(other), block, **envelope)

    def _call(self, block: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        name, call_id = string(block.get("name")) or "", string(block.get("id"))
        server = _MCP_TOOL.fullmatch(name)
        agent = string(mapping(block.get("input")).get("subagent_type"))
        if call_id is not None and agent is not None:
            self._agents[call_id] = agent
        facts = {"mcpServer": server["server"] if server else None, "arguments": block.get("input")}
        self.add("tool_call", {"toolName": name, "toolCallId": call_id, **facts}, **envelope)

    def _user(self, line: Mapping[str, Any]) -> None:
        envelope = self._envelope(line)
        content = mapping(line.get("message")).get("content")
        results = [block for block in mappings(content) if block.get("type") == "tool_result"]
        for block in results:
            self._tool_result(block, envelope)
        text = text_of(content)
        if not text or results:
            return
        if envelope["agent_id"] is not None and not line.get("isSynthetic"):
            self.add("user_message", {"content": text}, **envelope)
        else:
            self.custom("user", {"content": text, "isSynthetic": line.get("isSynthetic")}, **envelope)

    def _tool_result(self, block: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        failed, result = block.get("is_error") is True, result_of(block.get("content"))
        code = _EXIT_CODE.match(result) if failed and isinstance(result, str) else None
        facts = {"success": not failed, "result": result, "exitCode": int(code[1]) if code else None}
        self.add("tool_result", {"toolCallId": string(block.get("tool_use_id")), **facts}, **envelope)

    def _result(self, line: Mapping[str, Any]) -> None:
        # A result of success may still be an error, and then says so.
        self._end_turns()
        self.session_id = string(line.get("session_id")) or self.session_id
        self._usage(line)
        for denied in mappings(line.get("permission_denials")):
            self.custom("permission_denied", denied)
        subtype = string(line.get("subtype")) or ""
        self.waiting = False
        if subtype in _BUDGET:
            self.end_reason = "budget"
        elif line.get("is_error") is True or subtype.startswith("error"):
            errors = line.get("errors")
            told = "; ".join(str(item) for item in errors) if isinstance(errors, list) else ""
            self.fail(string(line.get("result")) or told or subtype, status_code(line.get("api_error_status")))
        else:
            self.error = self.status = None
            self._answer(string(line.get("result")))
            self.end_reason = _STOPS.get(str(line.get("stop_reason")))

    def _answer(self, text: str | None) -> None:
        """What commands of the agent's own answer, without a model, is told by the result alone."""
        if text and not self._answered:
            for type_, data in (("turn_start", {}), ("assistant_message", {"content": text}), ("turn_end", {})):
                self.add(type_, data)

    def _usage(self, line: Mapping[str, Any]) -> None:
        known = {model: mapping(found) for model, found in mapping(line.get("modelUsage")).items()}
        now = {model: _numbers(found) for model, found in known.items()}
        # Of a session that is taken up again, `modelUsage` counts all turns.
        recent = line.get("model_usage_since_last_result")
        if isinstance(recent, Mapping):
            found = {model: _numbers(mapping(item)) for model, item in recent.items()}
        else:
            found = since(now, mapping(self.output.before.get("usage")))
        self.totals["usage"] = now
        for model, item in found.items():
            cached, written = item["cacheReadInputTokens"], item["cacheCreationInputTokens"]
            data = usage_data(
                model,
                input_tokens=item["inputTokens"] + cached + written,
                output_tokens=item["outputTokens"],
                cache_read=cached,
                cache_write=written,
                reasoning=item["thinkingTokens"] or None,
                cost=dollars("anthropic", item["costUSD"]),
            )
            if data["inputTokens"] or data["outputTokens"]:
                self.add("token_usage", data)

    def _end_turns(self) -> None:
        for agent in list(self._open):
            self.add("turn_end", {}, agent_id=agent, agent_name=self._agents.get(agent or ""))
        self._open.clear()

    def _envelope(self, line: Mapping[str, Any]) -> dict[str, str | None]:
        agent = string(line.get("parent_tool_use_id"))
        name = self._agents.get(agent) if agent is not None else None
        return {"at": string(line.get("timestamp")), "agent_id": agent, "agent_name": name}


def _numbers(found: Mapping[str, Any]) -> dict[str, int | float]:
    return {**{key: count(found.get(key)) for key in _COUNTS}, "costUSD": price(found.get("costUSD"))}
