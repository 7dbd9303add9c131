"""Import of ATIF 1.6 and 1.7, the interchange format of agent trajectories."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from vally.model.trajectory import Event
from vally.run.imports.atif_checks import COUNTS, check_atif
from vally.run.imports.imported import Imported, finished, moment, span_ms, with_turns

_REFERENCE_LENGTH = 128
_TOKENS = dict(zip(COUNTS, ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"), strict=True))
_KNOWN = {
    "": {"schema_version", "trajectory_id", "session_id", "agent", "steps", "final_metrics", "subagent_trajectories"}
    | {"notes", "extra", "continued_trajectory_ref"},
    "steps[]": {"step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content"}
    | {"tool_calls", "observation", "metrics", "is_copied_context", "llm_call_count", "extra"},
}


def import_atif(
    document: object,
    *,
    work_dir: str = "",
    prompts: Sequence[str] = (),
    subagent_identity: Literal["name", "instance"] = "name",
    tool_result_status: Literal["infer", "require-explicit"] = "infer",
) -> Imported:
    """The trajectory of an ATIF document, which is a parsed JSON value.

    `prompts` are those of the stimulus, by which events get their conversation turn. Sub-agents are told apart by
    `subagent_identity`; with `require-explicit` a tool result whose status is not recorded has no `success`. Raises
    `VallyError`, whose text names the path of what is wrong.
    """
    warnings = check_atif(document)
    assert isinstance(document, Mapping)
    mapping = _Mapping(subagent_identity, tool_result_status, warnings)
    events = mapping.events_of(document, None)
    steps = [step for step in document["steps"] if not step.get("is_copied_context")]
    times = [step["timestamp"] for step in steps if step.get("timestamp") is not None]
    warnings += _unknown_keys(document)
    agent = document["agent"]
    fields: dict[str, Any] = {
        "id": _text(document.get("trajectory_id")) or _text(document.get("session_id")) or str(uuid.uuid4()),
        "output": _output(steps),
        "work_dir": work_dir,
        "end_reason": "completed" if steps and _says(steps[-1]) else "unknown",
        "metadata": _without_none(
            {
                "model": _text(agent.get("model_name")) or _most_used_model(steps),
                "executor": f"atif:{agent['name']}",
                "executorVersion": _text(agent.get("version")),
                "skillsLoaded": [],
                "startedAt": moment(times[0]) if times else None,
                "completedAt": moment(times[-1]) if times else None,
                "sessionID": _text(document.get("session_id")),
            }
        ),
        "imported_from": {"format": "atif", "version": document["schema_version"].removeprefix("ATIF-v")},
    }
    imported = finished(fields, events, span_ms(times[0], times[-1]) if times else None, warnings)
    return Imported(with_turns(imported.trajectory, prompts), imported.warnings)


class _Mapping:
    """Maps documents, embedded ones included; an agent is (id, name) and None stands for the main one."""

    def __init__(self, identity: str, status: str, warnings: list[str]) -> None:
        self._by_instance = identity == "instance"
        self._explicit = status == "require-explicit"
        self._warnings = warnings

    def events_of(self, document: Mapping[str, Any], agent: tuple[str, str] | None) -> list[Event]:
        embedded = {item["trajectory_id"]: item for item in document.get("subagent_trajectories") or ()}
        waiting = dict(embedded)
        model = _text(document["agent"].get("model_name"))
        steps = [step for step in document["steps"] if not step.get("is_copied_context")]
        events: list[Event] = []
        for step in steps:
            for kind, data, reference in self._step(step, model):
                events.append(_event(kind, data, step, agent))
                for name in reference:
                    if name in waiting:
                        events += self._embedded(waiting.pop(name))
                    elif name not in embedded:
                        self._warnings.append(f"the sub-agent trajectory '{name}' is not part of the document")
        for item in waiting.values():
            events += self._embedded(item)
        final = document.get("final_metrics")
        if final and not any(step.get("metrics") for step in steps):
            events.append(_event("token_usage", _usage(final, model, "total_"), {}, agent))
        return events

    def _embedded(self, document: Mapping[str, Any]) -> list[Event]:
        name = document["agent"]["name"]
        return self.events_of(document, (document["trajectory_id"] if self._by_instance else name, name))

    def _step(self, step: Mapping[str, Any], model: str | None) -> Iterator[tuple[str, dict[str, Any], Sequence[str]]]:
        text = flattened(step.get("message"))
        if step["source"] == "user":
            yield "user_message", {"content": text}, ()
        elif step["source"] == "system":
            yield (*_system(step, text), ())
        else:
            yield from self._agent_step(step, text, model)

    def _agent_step(
        self, step: Mapping[str, Any], text: str, model: str | None
    ) -> Iterator[tuple[str, dict[str, Any], Sequence[str]]]:
        turn_id = str(step["step_id"])
        own_model = _text(step.get("model_name")) or model
        yield "turn_start", {"turnId": turn_id}, ()
        if step.get("reasoning_content"):
            yield "reasoning", {"content": str(step["reasoning_content"])}, ()
        if text.strip():
            yield "assistant_message", _without_none({"content": text, "model": own_model}), ()
        calls = {call["tool_call_id"]: call for call in step.get("tool_calls") or ()}
        for call in calls.values():
            data = {
                "toolName": call["function_name"],
                "toolCallId": call["tool_call_id"],
                "arguments": call["arguments"],
                "turnId": turn_id,
            }
            yield "tool_call", data, ()
        for result in (step.get("observation") or {}).get("results") or ():
            yield (*self._result(result, calls), _references(result))
        if step.get("metrics"):
            yield "token_usage", _usage(step["metrics"], own_model, ""), ()
        yield "turn_end", {"turnId": turn_id}, ()

    def _result(self, result: Mapping[str, Any], calls: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
        content = flattened(result.get("content"))
        named = result.get("source_call_id")
        call = calls[named] if named is not None else next(iter(calls.values())) if len(calls) == 1 else None
        if call is None:
            return "custom", {"eventType": "observation", "content": content}
        data = {
            "toolName": call["function_name"],
            "toolCallId": call["tool_call_id"],
            "success": self._success(result),
            "result": content,
        }
        return "tool_result", _without_none(data)

    def _success(self, result: Mapping[str, Any]) -> bool | None:
        found = result.get("extra")
        extra: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        if extra.get("is_error") is True or extra.get("status") in ("error", "failed"):
            return False
        told = isinstance(extra.get("is_error"), bool) or isinstance(extra.get("status"), str)
        return None if self._explicit and not told else True


def _event(kind: str, data: dict[str, Any], step: Mapping[str, Any], agent: tuple[str, str] | None) -> Event:
    agent_id, agent_name = agent or (None, None)
    return Event(
        type=kind, timestamp=moment(step.get("timestamp")), agent_id=agent_id, agent_name=agent_name, data=data
    )


def _system(step: Mapping[str, Any], text: str) -> tuple[str, dict[str, Any]]:
    extra = step.get("extra")
    management = extra.get("context_management") if isinstance(extra, Mapping) else None
    kind = management.get("type") if isinstance(management, Mapping) else None
    if isinstance(management, Mapping) and isinstance(kind, str) and kind:
        further = {key: value for key, value in management.items() if key != "type"}
        return "system", {"eventType": kind, **further}
    return "custom", {"eventType": "system_message", "content": text}


def _references(result: Mapping[str, Any]) -> list[str]:
    """The sub-agent trajectories that a result speaks of, by their ids."""
    found = result.get("subagent_trajectory_ref")
    items = found if isinstance(found, list) else [found]
    names = (
        item.get("trajectory_id") or item.get("session_id") if isinstance(item, Mapping) else item for item in items
    )
    return [name for name in names if isinstance(name, str)]


def _usage(metrics: Mapping[str, Any], model: str | None, prefix: str) -> dict[str, Any]:
    cost = metrics.get(f"{prefix}cost_usd")
    data = {name: _count(metrics.get(prefix + key)) for key, name in _TOKENS.items()}
    return _without_none(
        {
            "inputTokens": data.pop("inputTokens") or 0,
            "outputTokens": data.pop("outputTokens") or 0,
            "model": model or "unknown",
            **data,
            "cost": None if cost is None else {"provider": "atif", "unit": "usd", "amount": cost},
        }
    )


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def flattened(content: object) -> str:
    """Text of a message or an observation: its parts joined by line breaks, images as references."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(part["text"] if part["type"] == "text" else f"[image:{_reference(part)}]" for part in content)


def _reference(part: Mapping[str, Any]) -> str:
    if part["type"] == "image":
        text = str(part["source"]["path"])
    else:
        image = part.get("image_url")
        text = str(image["url"] if isinstance(image, Mapping) else part["url"])
    data = re.match(r"data:([^;,]*)", text, re.IGNORECASE)
    text = data[1] if data else text
    return text if len(text) <= _REFERENCE_LENGTH else text[:_REFERENCE_LENGTH] + "…"


def _output(steps: Sequence[Mapping[str, Any]]) -> str:
    texts = (flattened(step.get("message")) for step in reversed(steps) if step["source"] == "agent")
    return next((text for text in texts if text.strip()), "")


def _says(step: Mapping[str, Any]) -> bool:
    return step["source"] == "agent" and bool(flattened(step.get("message")).strip())


def _most_used_model(steps: Sequence[Mapping[str, Any]]) -> str | None:
    models = Counter(name for step in steps if (name := _text(step.get("model_name"))))
    return models.most_common(1)[0][0] if models else None


def _unknown_keys(document: Mapping[str, Any]) -> list[str]:
    unknown = {key for key in document if key not in _KNOWN[""]}
    unknown |= {f"steps[].{key}" for step in document["steps"] for key in step if key not in _KNOWN["steps[]"]}
    if not unknown:
        return []
    shown = ", ".join(sorted(map(str, unknown))[:10])
    return [f"unknown keys are ignored: {shown}"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _without_none(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}
