"""The dialect `copilot`: `copilot -p --output-format json`, whose lines are the events of a Copilot session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vally_executor_command.dialects.jsonl import JsonLines, integer, mapping, mappings, status_code, string
from vally_executor_command.dialects.parsed import TurnOutput
from vally_executor_command.dialects.usage import counts, price, since, usage_data

_SUFFIXES = ("_delta", ".partial_result", "_partial_result", "_progress")
_FLEETING = frozenset(
    {
        "assistant.idle",
        "assistant.message_start",
        "model.call_final_result",
        "model.call_finished",
        "model.call_start",
        "pending_messages.modified",
        "session.background_tasks_changed",
        "session.binary_asset",
        "session.idle",
        "session.info",
        "session.mcp_server_tools_loaded",
        "session.title_changed",
        "session.tools_updated",
        "session.usage_checkpoint",
        "session.usage_info",
        "system.message",
        "tool.shell_output",
        "user.message",
    }
)
_FLEETING_FAMILIES = ("permission.", "hook.", "skill.context_delivered")
_SYSTEM = {
    "session.compaction_start": "compaction_start",
    "session.truncation": "truncation",
    "session.snapshot_rewind": "snapshot_rewind",
    "session.context_cleared": "context_cleared",
}
_USAGE_KEYS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}


class CopilotLines(JsonLines):
    """Native events by the table of the records chapter; the stream has no usage, the usage file has it per session."""

    def __init__(self, output: TurnOutput) -> None:
        super().__init__(output)
        self._agents: dict[str, str] = {}
        self._thought = False

    def line(self, type_: str, line: Mapping[str, Any]) -> None:
        """Take one object."""
        data, envelope = mapping(line.get("data")), self._envelope(line)
        if type_ in _FLEETING or type_.endswith(_SUFFIXES) or type_.startswith(_FLEETING_FAMILIES):
            return
        match type_:
            case "assistant.turn_start" | "assistant.turn_end":
                self._thought = False
                self.add(type_.removeprefix("assistant."), {"turnId": string(data.get("turnId"))}, **envelope)
            case "assistant.message" | "assistant.reasoning":
                self._message(type_, data, envelope)
            case "tool.execution_start" | "tool.execution_complete":
                self._tool(type_, data, envelope)
            case "skill.invoked":
                self._skill(data, envelope)
            case "session.error":
                self._error(data)
            case "model.call_failure":
                self.retrying("the provider refused a request", status_code(data.get("statusCode")))
                self.custom(type_, data, **envelope)
            case "result":
                self.ended()
                self.going_on()
                self.session_id = string(line.get("sessionId"))
            case _:
                self._session(type_, data, envelope)

    def close(self) -> None:
        """Take the usage of this turn from the usage file."""
        found = {
            model: mapping(item) for model, item in mapping(_document(self.output.usage).get("modelMetrics")).items()
        }
        now = {model: counts(mapping(item.get("usage")), _USAGE_KEYS) for model, item in found.items()}
        prices = {model: {"cost": price(item.get("totalNanoAiu"))} for model, item in found.items()}
        before = self.output.before
        costs = since(prices, mapping(before.get("cost")))
        for model, item in since(now, mapping(before.get("usage"))).items():
            amount = costs[model]["cost"]
            data = usage_data(
                model,
                input_tokens=item["input"],
                output_tokens=item["output"],
                cache_read=item["cache_read"],
                cache_write=item["cache_write"],
                reasoning=item["reasoning"] or None,
                cost={"provider": "github-copilot", "unit": "nano-aiu", "amount": amount} if amount else None,
            )
            if item["input"] or item["output"]:
                self.add("token_usage", data)
        if now:
            self.totals.update(usage=now, cost=prices)

    def _message(self, type_: str, data: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        self.going_on()
        message = type_ == "assistant.message"
        thought = string(data.get("reasoningText" if message else "content"))
        # Both kinds of event tell the same thoughts.
        if thought is not None and not self._thought:
            self._thought = True
            self.add("reasoning", {"content": thought}, **envelope)
        text = string(data.get("content")) if message else None
        if text is not None and text.strip():
            facts = {"messageId": string(data.get("messageId")), "model": string(data.get("model"))}
            self.add("assistant_message", {"content": text, **facts}, **envelope)

    def _tool(self, type_: str, data: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        call_id, name = string(data.get("toolCallId")), string(data.get("toolName"))
        if type_ == "tool.execution_start":
            facts = {"arguments": data.get("arguments"), "mcpServer": string(data.get("mcpServerName"))}
            turn = string(data.get("turnId"))
            self.add("tool_call", {"toolName": name, "toolCallId": call_id, "turnId": turn, **facts}, **envelope)
            return
        success, result, error = data.get("success") is True, mapping(data.get("result")), mapping(data.get("error"))
        facts = {
            "toolName": name,
            "toolCallId": call_id,
            "success": success,
            "result": result.get("content") if success else string(error.get("message")),
            "detail": string(result.get("detailedContent")),
            "errorCode": string(error.get("code")),
            "exitCode": _exit_code(data, result),
        }
        self.add("tool_result", facts, **envelope)

    def _skill(self, data: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        keys = ("name", "path", "pluginName", "allowedTools", "content", "trigger")
        facts = {key: data.get(key) for key in keys}
        # A skill that the agent invokes by its tool is found by the call of that tool.
        if data.get("trigger") in ("agent-invoked", "context-load"):
            self.custom("skill.invoked", facts, **envelope)
        else:
            self.add("skill_activation", facts, **envelope)

    def _session(self, type_: str, data: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        match type_:
            case "session.skills_loaded":
                enabled = [skill for skill in mappings(data.get("skills")) if skill.get("enabled") is True]
                own = [skill for skill in enabled if skill.get("source") == "builtin"]
                self.skills = tuple(str(skill.get("name")) for skill in enabled)
                self.builtin_skills = tuple(str(skill.get("name")) for skill in own)
            case "session.start":
                self.session_id = string(data.get("sessionId"))
                if version := string(data.get("copilotVersion")):
                    self.metadata["executorVersion"] = version
            case "session.mcp_servers_loaded":
                self._servers(mappings(data.get("servers")))
            case "session.mcp_server_status_changed":
                self._server(string(data.get("serverName")), data)
            case "session.compaction_complete":
                event = "compaction" if data.get("success") is True else "compaction_failed"
                rest = {key: value for key, value in data.items() if key != "summaryContent"}
                self.add("system", {**rest, "eventType": event}, **envelope)
            case "subagent.started" | "subagent.selected":
                name = string(data.get("agentName"))
                for agent in (string(data.get("toolCallId")), envelope["agent_id"]):
                    if agent is not None and name is not None:
                        self._agents[agent] = name
                self.custom(type_, data, **envelope)
            case _ if type_ in _SYSTEM:
                self.add("system", {**data, "eventType": _SYSTEM[type_]}, **envelope)
            case _:
                self.custom(type_, data, **envelope)

    def _servers(self, servers: list[Mapping[str, Any]]) -> None:
        if servers:
            self.metadata["mcpServers"] = sorted(str(server.get("name")) for server in servers)
        for server in servers:
            self._server(string(server.get("name")), server)

    def _server(self, name: str | None, facts: Mapping[str, Any]) -> None:
        if facts.get("status") == "failed" and name is not None:
            self.failed_servers[name] = string(facts.get("error")) or "it did not start"

    def _error(self, data: Mapping[str, Any]) -> None:
        message, status = string(data.get("message")) or "", status_code(data.get("statusCode"))
        facts = {"type": string(data.get("errorType")), "code": status, "url": string(data.get("url"))}
        self.add("error", {"message": message, **facts})
        self.fail(message, status or {"authentication": 401, "rate_limit": 429}.get(str(data.get("errorType"))))

    def _envelope(self, line: Mapping[str, Any]) -> dict[str, str | None]:
        agent = string(line.get("agentId")) or string(mapping(line.get("data")).get("parentToolCallId"))
        name = self._agents.get(agent) if agent is not None else None
        return {"at": string(line.get("timestamp")), "agent_id": agent, "agent_name": name}


def _exit_code(data: Mapping[str, Any], result: Mapping[str, Any]) -> int | None:
    code = integer(mapping(data.get("shellExecution")).get("exitCode"))
    if code is not None:
        return code
    parts = [part for part in mappings(result.get("contents")) if part.get("type") == "shell_exit"]
    return integer(parts[-1].get("exitCode")) if parts else None


def _document(text: str) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(text)) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}
