"""Events of the runtime become events of the trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vally import TrajectoryBuilder
from vally_executor_copilot_sdk.native import PROMPT, Native

COST_UNIT = {"provider": "github-copilot", "unit": "nano-aiu"}
_KEPT_EPHEMERAL = frozenset({"assistant.usage", "assistant.reasoning", "model.call_failure", "assistant.turn_retry"})
_DROPPED = frozenset(
    {
        "system.message",
        "pending_messages.modified",
        "session.start",
        "session.idle",
        "session.title_changed",
        "session.usage_info",
        "session.usage_checkpoint",
        "session.binary_asset",
    }
)
_DROPPED_GROUPS = ("permission.", "hook.", "skill.context_delivered")
_DROPPED_ENDINGS = ("_delta", "partial_result", "_progress")
_SYSTEM = {
    "session.compaction_start": "compaction_start",
    "session.truncation": "truncation",
    "session.snapshot_rewind": "snapshot_rewind",
    "session.context_cleared": "context_cleared",
}


def is_fleeting(event: Native) -> bool:
    """Whether the runtime neither keeps an event nor a trajectory has it."""
    return bool(event.get("ephemeral")) and event["type"] not in _KEPT_EPHEMERAL


class EventMapper:
    """Hands the events of one session, in their order, to a builder.

    Events that must not appear are dropped; types that nobody knows become `custom`, unless they are fleeting.
    """

    def __init__(self, builder: TrajectoryBuilder) -> None:
        self._builder = builder
        self._prompt: dict[str, Any] | None = None
        self._agents: dict[str, str] = {}
        self._thoughts: set[tuple[str | None, str]] = set()
        self._calls: set[str] = set()
        self._parts: dict[str, dict[int, str]] = {}
        self._known: Mapping[str, Callable[[Native, dict[str, Any]], None]] = {
            PROMPT: self._sent,
            "user.message": self._user_message,
            "assistant.turn_start": self._turn_start,
            "assistant.turn_end": self._turn_end,
            "assistant.message": self._message,
            "assistant.reasoning": self._reasoning,
            "tool.execution_start": self._call,
            "tool.execution_complete": self._result,
            "assistant.usage": self._usage,
            "session.usage_record": self._usage_record,
            "skill.invoked": self._skill,
            "session.error": self._error,
            "session.compaction_complete": self._compacted,
        }

    def feed(self, event: Native) -> None:
        """Take one event."""
        if is_fleeting(event):
            return
        kind, data = str(event["type"]), event["data"]
        self._note_agent(kind, event, data)
        if kind in self._known:
            self._known[kind](event, data)
        elif kind in _SYSTEM:
            self._builder.system(_SYSTEM[kind], _without(data, "summaryContent"), **self._envelope(event))
        elif not _is_dropped(kind):
            self._custom(event, data)

    def _sent(self, event: Native, data: dict[str, Any]) -> None:
        made = self._builder.user_message(
            data["content"], attachments=data["attachments"], timestamp=event.get("timestamp")
        )
        self._prompt = made.data

    def _user_message(self, event: Native, data: dict[str, Any]) -> None:
        own = not event.get("agentId") and data.get("source") in (None, "user")
        if self._prompt is not None and own and not data.get("isAutopilotContinuation"):
            # The prompt stands there since it was sent.
            if data.get("agentMode"):
                self._prompt["agent_mode"] = data["agentMode"]
            self._prompt = None
        else:
            self._custom(event, _without(data, "transformedContent"))

    def _turn_start(self, event: Native, data: dict[str, Any]) -> None:
        self._thoughts = {known for known in self._thoughts if known[0] != event.get("agentId")}
        self._builder.turn_start(_text(data.get("turnId")), **self._envelope(event))

    def _turn_end(self, event: Native, data: dict[str, Any]) -> None:
        self._builder.turn_end(_text(data.get("turnId")), **self._envelope(event))

    def _message(self, event: Native, data: dict[str, Any]) -> None:
        agent = event.get("agentId")
        if not any(known[0] == agent for known in self._thoughts):
            self._think(event, data.get("reasoningText"))
        content = self._whole(data)
        if content is not None and content.strip():
            self._builder.assistant_message(
                content,
                message_id=_text(data.get("messageId")),
                model=_text(data.get("model")),
                **self._envelope(event),
            )

    def _whole(self, data: dict[str, Any]) -> str | None:
        """The text of a message; None while parts of it are still to come."""
        content = _text(data.get("content")) or ""
        count = data.get("chunkCount")
        if not isinstance(count, int) or count < 2:
            return content
        parts = self._parts.setdefault(str(data.get("messageId")), {})
        parts[data.get("chunkIndex") or 0] = content
        return "".join(parts[index] for index in sorted(parts)) if len(parts) == count else None

    def _reasoning(self, event: Native, data: dict[str, Any]) -> None:
        self._think(event, data.get("content"))

    def _think(self, event: Native, content: object) -> None:
        # A message and an event of its own may tell the same thought.
        key = (event.get("agentId"), str(content))
        if isinstance(content, str) and content.strip() and key not in self._thoughts:
            self._thoughts.add(key)
            self._builder.reasoning(content, **self._envelope(event))

    def _call(self, event: Native, data: dict[str, Any]) -> None:
        self._builder.tool_call(
            str(data.get("toolName") or ""),
            call_id=_text(data.get("toolCallId")),
            arguments=data.get("arguments"),
            turn_id=_text(data.get("turnId")),
            mcp_server=_text(data.get("mcpServerName")),
            **self._envelope(event),
        )

    def _result(self, event: Native, data: dict[str, Any]) -> None:
        told, failed = _mapping(data.get("result")), _mapping(data.get("error"))
        success = data.get("success") is True
        self._builder.tool_result(
            str(data.get("toolCallId") or ""),
            success=success,
            result=told.get("content") if success else failed.get("message", told.get("content")),
            detail=_text(told.get("detailedContent")),
            error_code=_text(failed.get("code")),
            exit_code=_exit_code(data),
            **self._envelope(event),
        )

    def _usage_record(self, event: Native, data: dict[str, Any]) -> None:
        self._usage(event, _mapping(data.get("usage")))

    def _usage(self, event: Native, data: dict[str, Any]) -> None:
        call = data.get("apiCallId")
        if isinstance(call, str):
            if call in self._calls:
                return
            self._calls.add(call)
        amount = _mapping(data.get("copilotUsage")).get("totalNanoAiu")
        self._builder.token_usage(
            data.get("inputTokens") or 0,
            data.get("outputTokens") or 0,
            model=_text(data.get("model")),
            cache_read_tokens=data.get("cacheReadTokens"),
            cache_write_tokens=data.get("cacheWriteTokens"),
            reasoning_tokens=data.get("reasoningTokens"),
            cost=None if amount is None else {**COST_UNIT, "amount": amount},
            **self._envelope(event),
        )

    def _skill(self, event: Native, data: dict[str, Any]) -> None:
        if data.get("trigger") == "context-load":
            self._custom(event, data)
            return
        self._builder.skill_activation(
            str(data.get("name") or ""),
            path=str(data.get("path") or ""),
            plugin_name=_text(data.get("pluginName")),
            allowed_tools=data.get("allowedTools"),
            content=_text(data.get("content")),
            trigger=_text(data.get("trigger")),
            **self._envelope(event),
        )

    def _error(self, event: Native, data: dict[str, Any]) -> None:
        self._builder.error(
            str(data.get("message") or "the session ended with an error"),
            type=_text(data.get("errorType")),
            code=data.get("statusCode"),
            url=_text(data.get("url")),
            **self._envelope(event),
        )

    def _compacted(self, event: Native, data: dict[str, Any]) -> None:
        name = "compaction" if data.get("success") is True else "compaction_failed"
        self._builder.system(name, _without(data, "summaryContent"), **self._envelope(event))

    def _custom(self, event: Native, data: dict[str, Any]) -> None:
        self._builder.custom(str(event["type"]), _without(data, "eventType"), **self._envelope(event))

    def _note_agent(self, kind: str, event: Native, data: dict[str, Any]) -> None:
        if kind in ("subagent.started", "subagent.selected") and isinstance(data.get("agentName"), str):
            for key in (event.get("agentId"), data.get("toolCallId")):
                if isinstance(key, str):
                    self._agents[key] = data["agentName"]

    def _envelope(self, event: Native) -> Any:
        agent = event.get("agentId") or None
        return {
            "timestamp": event.get("timestamp"),
            "agent_id": agent,
            "agent_name": self._agents.get(agent) if agent else None,
        }


def _is_dropped(kind: str) -> bool:
    return kind in _DROPPED or kind.startswith(_DROPPED_GROUPS) or kind.endswith(_DROPPED_ENDINGS)


def _exit_code(data: Mapping[str, Any]) -> int | None:
    told: list[Any] = [_mapping(data.get("shellExecution")).get("exitCode")]
    contents = _mapping(data.get("result")).get("contents")
    if isinstance(contents, list):
        told += [item.get("exitCode") for item in map(_mapping, contents) if item.get("type") == "shell_exit"]
    return next((code for code in told if isinstance(code, int) and not isinstance(code, bool)), None)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}
