"""The events of a Copilot CLI session, mapped one by one to those of a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vally.model.trajectory import Event
from vally.run.imports.imported import moment

Native = Mapping[str, Any]
"""One line of a session: `{type, data, id?, timestamp?, agentId?, ephemeral?}`; `data` is a mapping."""

COST_UNIT = {"provider": "github-copilot", "unit": "nano-aiu"}
_SYSTEM = {
    "session.compaction_start": "compaction_start",
    "session.truncation": "truncation",
    "session.snapshot_rewind": "snapshot_rewind",
    "session.context_cleared": "context_cleared",
}
_SILENT = frozenset(
    {
        "session.start",
        "session.title_changed",
        "session.usage_info",
        "session.usage_checkpoint",
        "session.binary_asset",
        "system.message",
    }
)
_SILENT_GROUPS = ("permission.", "hook.", "pending_messages.", "skill.context_delivered")
_SILENT_ENDINGS = ("_delta", ".partial_result", "_partial_result", "_progress")
_ROUTER = "skill"
"""The tool by which an agent activates a skill."""


class SessionEvents:
    """Maps native events in their order; `events` grows with each call of `add`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.has_skill_events = False
        self.has_usage = False
        self._agents: dict[str, str] = {}
        self._open_turns: dict[str | None, list[str]] = {}
        self._reasoned: set[str | None] = set()
        self._messages: dict[tuple[str | None, str], _Message] = {}
        self._tools: dict[str, str] = {}
        self._usage_calls: set[str] = set()
        self._known: Mapping[str, Callable[[Native, Mapping[str, Any]], None]] = {
            "user.message": self._user_message,
            "assistant.turn_start": self._turn_start,
            "assistant.turn_end": self._turn_end,
            "assistant.message": self._assistant_message,
            "assistant.reasoning": self._reasoning,
            "tool.execution_start": self._tool_call,
            "tool.execution_complete": self._tool_result,
            "assistant.usage": self._usage,
            "session.usage_record": self._usage_record,
            "skill.invoked": self._skill,
            "session.error": self._error,
            "session.compaction_complete": self._compacted,
        }

    def add(self, native: Native) -> None:
        """Map one event; what is not listed becomes `custom`, what must not appear is dropped."""
        kind, data = native["type"], _mapping(native.get("data"))
        self._note_agent(kind, native, data)
        if kind in self._known:
            self._known[kind](native, data)
        elif kind in _SYSTEM:
            self._append("system", {"eventType": _SYSTEM[kind], **_without(data, "summaryContent")}, native)
        elif not is_silent(kind):
            self._custom(native, data)

    def open_main_turn(self) -> bool:
        """Whether an agent turn of the main agent began and did not end."""
        return bool(self._open_turns.get(None))

    def activate_skills_by_calls(self) -> None:
        """Put an activation before each successful call of the skill tool; for logs that have no such events."""
        succeeded = {
            event.data.get("toolCallId")
            for event in self.events
            if event.type == "tool_result" and event.data.get("success") is True
        }
        events: list[Event] = []
        for event in self.events:
            name = _mapping(event.data.get("arguments")).get("skill")
            is_skill = event.type == "tool_call" and event.data.get("toolName") == _ROUTER and isinstance(name, str)
            if is_skill and event.data.get("toolCallId") in succeeded:
                data = {"name": name, "path": ""}
                events.append(event.model_copy(update={"type": "skill_activation", "data": data}))
            events.append(event)
        self.events = events

    def add_usage(self, data: Mapping[str, Any], model: str | None, like: Native) -> None:
        """Append token usage that a session tells of as a sum."""
        self._append("token_usage", usage_data(data, model), like)

    def _append(self, kind: str, data: Mapping[str, Any], native: Native) -> Event:
        agent = agent_of(native)
        event = Event(
            type=kind,
            timestamp=moment(native.get("timestamp")),
            agent_id=agent,
            agent_name=self._agents.get(agent) if agent else None,
            data={key: value for key, value in data.items() if value is not None},
        )
        self.events.append(event)
        return event

    def _custom(self, native: Native, data: Mapping[str, Any]) -> None:
        self._append("custom", {"eventType": native["type"], **_without(data, "eventType")}, native)

    def _note_agent(self, kind: str, native: Native, data: Mapping[str, Any]) -> None:
        name = _text(data.get("agentName"))
        if kind in ("subagent.started", "subagent.selected") and name:
            for key in (_text(native.get("agentId")), _text(data.get("toolCallId"))):
                if key:
                    self._agents[key] = name

    def _user_message(self, native: Native, data: Mapping[str, Any]) -> None:
        if data.get("source") not in (None, "user") or data.get("isAutopilotContinuation") is True:
            self._custom(native, _without(data, "transformedContent"))
            return
        content = data.get("content")
        found = data.get("attachments")
        names = [_attachment(item) for item in found] if isinstance(found, list) and found else None
        self._append(
            "user_message",
            {"content": content if isinstance(content, str) else "", "agent_mode": _text(data.get("agentMode"))}
            | {"attachments": names},
            native,
        )

    def _turn_start(self, native: Native, data: Mapping[str, Any]) -> None:
        agent, turn_id = agent_of(native), _id(data.get("turnId"))
        self._open_turns.setdefault(agent, []).append(turn_id or "")
        self._reasoned.discard(agent)
        self._append("turn_start", {"turnId": turn_id}, native)

    def _turn_end(self, native: Native, data: Mapping[str, Any]) -> None:
        agent, turn_id = agent_of(native), _id(data.get("turnId"))
        started = self._open_turns.get(agent) or []
        if turn_id in started:
            started.remove(turn_id)
        else:
            del started[-1:]
        self._append("turn_end", {"turnId": turn_id}, native)

    def _assistant_message(self, native: Native, data: Mapping[str, Any]) -> None:
        agent = agent_of(native)
        thought = _text(data.get("reasoningText"))
        if thought and agent not in self._reasoned:
            self._think(thought, native)
        content = _text(data.get("content")) or ""
        message_id = _text(data.get("messageId"))
        message = self._messages.setdefault((agent, message_id), _Message()) if message_id else _Message()
        text = message.add(content, data.get("chunkIndex"))
        if message.event is not None:
            message.event.data["content"] = text
        elif text.strip():
            shown = {"content": text, "messageId": message_id, "model": _text(data.get("model"))}
            message.event = self._append("assistant_message", shown, native)

    def _reasoning(self, native: Native, data: Mapping[str, Any]) -> None:
        content = _text(data.get("content"))
        if content:
            self._think(content, native)

    def _think(self, content: str, native: Native) -> None:
        self._reasoned.add(agent_of(native))
        self._append("reasoning", {"content": content}, native)

    def _tool_call(self, native: Native, data: Mapping[str, Any]) -> None:
        name, call_id = _text(data.get("toolName")) or "", _text(data.get("toolCallId"))
        if call_id:
            self._tools[call_id] = name
        open_turns = self._open_turns.get(agent_of(native))
        shown = {
            "toolName": name,
            "toolCallId": call_id,
            "arguments": data.get("arguments"),
            "turnId": _id(data.get("turnId")) or (open_turns[-1] if open_turns else None),
            "mcpServer": _text(data.get("mcpServerName")),
        }
        self._append("tool_call", shown, native)

    def _tool_result(self, native: Native, data: Mapping[str, Any]) -> None:
        told, failure = _mapping(data.get("result")), _mapping(data.get("error"))
        success = data.get("success") is True
        call_id = _text(data.get("toolCallId"))
        shown = {
            "toolName": self._tools.get(call_id or "") or _text(data.get("toolName")) or "",
            "toolCallId": call_id,
            "success": success,
            "result": told.get("content") if success else failure.get("message", told.get("content")),
            "detail": _text(told.get("detailedContent")),
            "errorCode": None if success else _text(failure.get("code")),
            "exitCode": _exit_code(data),
        }
        self._append("tool_result", shown, native)

    def _usage_record(self, native: Native, data: Mapping[str, Any]) -> None:
        usage = _mapping(data.get("usage"))
        outer = {key: data[key] for key in ("apiCallId", "copilotUsage", "model") if key in data}
        self._usage(native, {**outer, **usage})

    def _usage(self, native: Native, data: Mapping[str, Any]) -> None:
        call = _text(data.get("apiCallId"))
        if call in self._usage_calls:
            return
        if call:
            self._usage_calls.add(call)
        self.has_usage = True
        self._append("token_usage", usage_data(data, _text(data.get("model"))), native)

    def _skill(self, native: Native, data: Mapping[str, Any]) -> None:
        self.has_skill_events = True
        if data.get("trigger") == "context-load":
            self._custom(native, data)
            return
        keys = ("pluginName", "allowedTools", "content", "trigger")
        shown = {"name": _text(data.get("name")) or "", "path": _text(data.get("path")) or ""}
        self._append("skill_activation", shown | {key: data.get(key) for key in keys}, native)

    def _error(self, native: Native, data: Mapping[str, Any]) -> None:
        shown = {
            "message": _text(data.get("message")) or "the session ended with an error",
            "type": _text(data.get("errorType")),
            "code": data.get("statusCode"),
            "url": _text(data.get("url")),
        }
        self._append("error", shown, native)

    def _compacted(self, native: Native, data: Mapping[str, Any]) -> None:
        name = "compaction" if data.get("success") is True else "compaction_failed"
        self._append("system", {"eventType": name, **_without(data, "summaryContent")}, native)


class _Message:
    """A message that may come in parts."""

    def __init__(self) -> None:
        self.event: Event | None = None
        self._parts: dict[int, str] = {}

    def add(self, content: str, index: object) -> str:
        """Take a part and return the text so far, in the order of the parts."""
        place = index if type(index) is int else len(self._parts)
        self._parts[place] = content
        return "".join(self._parts[key] for key in sorted(self._parts))


def is_silent(kind: str) -> bool:
    """Whether events of a type leave no trace in a trajectory."""
    return kind in _SILENT or kind.startswith(_SILENT_GROUPS) or kind.endswith(_SILENT_ENDINGS)


def agent_of(native: Native) -> str | None:
    """The sub-agent that an event belongs to; older logs name the call that started it instead."""
    return _text(native.get("agentId")) or _text(_mapping(native.get("data")).get("parentToolCallId"))


def usage_data(data: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """The data of a `token_usage` event."""
    amount = _mapping(data.get("copilotUsage")).get("totalNanoAiu")
    further = {key: data.get(key) for key in ("cacheReadTokens", "cacheWriteTokens", "reasoningTokens")}
    return {
        "inputTokens": data.get("inputTokens") or 0,
        "outputTokens": data.get("outputTokens") or 0,
        "model": model or "unknown",
        **{key: value for key, value in further.items() if value is not None},
        **({} if amount is None else {"cost": {**COST_UNIT, "amount": amount}}),
    }


def _exit_code(data: Mapping[str, Any]) -> int | None:
    contents = _mapping(data.get("result")).get("contents")
    exits = (
        [item for item in contents if _mapping(item).get("type") == "shell_exit"] if isinstance(contents, list) else []
    )
    codes = [_mapping(item).get("exitCode") for item in (data.get("shellExecution"), *exits)]
    return next((code for code in codes if type(code) is int), None)


def _attachment(item: object) -> str:
    if isinstance(item, Mapping):
        return str(next((item[key] for key in ("displayName", "name", "path") if item.get(key)), "attachment"))
    return str(item)


def _id(value: object) -> str | None:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}
