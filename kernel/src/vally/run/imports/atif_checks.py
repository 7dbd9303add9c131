"""Whether a document is an ATIF trajectory: the first thing that is wrong, by its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vally.errors import VallyError
from vally.model.jsonio import parse_timestamp
from vally.model.metrics import is_amount

SUPPORTED = ("ATIF-v1.6", "ATIF-v1.7")
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens")
_ON_AGENT_STEPS = ("model_name", "reasoning_content", "tool_calls", "metrics")
_VERSION = re.compile(r"ATIF-v1\.[0-9]+(?:\.[0-9]+)?")


class AtifError(VallyError):
    """A document is not the ATIF trajectory it should be; `where` is the path of what is wrong."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"ATIF validation: {path} {detail}", code="bad-atif", where=path)
        self.path = path
        self.detail = detail


def is_atif(document: object) -> bool:
    """Whether a document says of itself that it is an ATIF trajectory."""
    version = document.get("schema_version") if isinstance(document, Mapping) else None
    return isinstance(version, str) and version.startswith("ATIF-")


def check_atif(document: object, prefix: str = "") -> list[str]:
    """Check a document and return warnings. Raises `AtifError` for the first thing that is wrong."""
    if not isinstance(document, Mapping):
        raise AtifError(prefix.rstrip(".") or "document", "must be an object")
    warnings = [] if prefix else _version(document)
    _agent(document.get("agent"), prefix, warnings)
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise AtifError(f"{prefix}steps", "must be a non-empty list")
    for index, step in enumerate(steps):
        _step(step, index, f"{prefix}steps[{index}]")
    final = document.get("final_metrics")
    if final is not None:
        _metrics(_mapping(final, f"{prefix}final_metrics"), f"{prefix}final_metrics", final=True)
    _subagents(document.get("subagent_trajectories"), prefix, warnings)
    return warnings


def _version(document: Mapping[str, Any]) -> list[str]:
    version = document.get("schema_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise AtifError("schema_version", "must be an ATIF-v1.x version")
    if version in SUPPORTED or version.rsplit(".", 1)[0] in SUPPORTED:
        return []
    return [f"{version} is read as {SUPPORTED[-1]}"]


def _agent(agent: object, prefix: str, warnings: list[str]) -> None:
    if not isinstance(agent, Mapping):
        raise AtifError(f"{prefix}agent", "is required")
    if not _filled(agent.get("name")):
        raise AtifError(f"{prefix}agent.name", "is required")
    if agent.get("version") is None:
        warnings.append(f"{prefix}agent.version is missing")


def _step(step: object, index: int, path: str) -> None:
    step = _mapping(step, path)
    number = step.get("step_id")
    if type(number) is not int or number != index + 1:
        raise AtifError(f"{path}.step_id", f"must be {index + 1}")
    source = step.get("source")
    if source not in ("system", "user", "agent"):
        raise AtifError(f"{path}.source", "must be system, user or agent")
    _content(step.get("message"), f"{path}.message")
    if source != "agent":
        for key in _ON_AGENT_STEPS:
            if step.get(key) is not None:
                raise AtifError(f"{path}.{key}", "is allowed on agent steps only")
    if step.get("timestamp") is not None and not _is_time(step["timestamp"]):
        raise AtifError(f"{path}.timestamp", "is not an ISO 8601 time")
    _observation(step.get("observation"), _calls(step.get("tool_calls"), path), path)
    if step.get("metrics") is not None:
        _step_metrics(step, path)


def _is_time(value: object) -> bool:
    return isinstance(value, str) and parse_timestamp(value) is not None


def _content(content: object, path: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise AtifError(path, "must be a string or a list of parts")
    for index, part in enumerate(content):
        _part(_mapping(part, f"{path}[{index}]"), f"{path}[{index}]")


def _part(part: Mapping[str, Any], path: str) -> None:
    kind = part.get("type")
    if kind == "text":
        if not isinstance(part.get("text"), str):
            raise AtifError(f"{path}.text", "is required")
    elif kind == "image":
        source = part.get("source")
        if not isinstance(source, Mapping) or not _filled(source.get("path")):
            raise AtifError(f"{path}.source.path", "is required")
    elif kind == "image_url":
        image = part.get("image_url")
        address = image.get("url") if isinstance(image, Mapping) else part.get("url")
        if not _filled(address):
            raise AtifError(f"{path}.image_url.url", "is required")
    else:
        raise AtifError(path, f"unknown part type '{kind}'")


def _calls(calls: object, path: str) -> list[str]:
    """The ids of the calls of a step."""
    ids: list[str] = []
    for index, call in enumerate(_list(calls, f"{path}.tool_calls")):
        where = f"{path}.tool_calls[{index}]"
        call = _mapping(call, where)
        for key in ("tool_call_id", "function_name"):
            if not _filled(call.get(key)):
                raise AtifError(f"{where}.{key}", "is required")
        if not isinstance(call.get("arguments"), Mapping):
            raise AtifError(f"{where}.arguments", "must be an object")
        if call["tool_call_id"] in ids:
            raise AtifError(f"{where}.tool_call_id", f"repeats '{call['tool_call_id']}'")
        ids.append(call["tool_call_id"])
    return ids


def _observation(observation: object, calls: Sequence[str], path: str) -> None:
    if observation is None:
        return
    results = _mapping(observation, f"{path}.observation").get("results")
    for index, result in enumerate(_list(results, f"{path}.observation.results")):
        where = f"{path}.observation.results[{index}]"
        result = _mapping(result, where)
        call = result.get("source_call_id")
        if call is not None and call not in calls:
            raise AtifError(f"{where}.source_call_id", f"'{call}' is not a tool call of this step")
        _content(result.get("content"), f"{where}.content")


def _step_metrics(step: Mapping[str, Any], path: str) -> None:
    metrics = _mapping(step["metrics"], f"{path}.metrics")
    calls = step.get("llm_call_count")
    if calls is not None and (type(calls) is not int or calls < 0):
        raise AtifError(f"{path}.llm_call_count", "must be a non-negative integer")
    if calls == 0:
        used = next((key for key in (*COUNTS, "cost_usd") if metrics.get(key) is not None), None)
        if used is not None:
            raise AtifError(f"{path}.metrics.{used}", "is not allowed when llm_call_count is 0")
    _metrics(metrics, f"{path}.metrics", final=False)


def _metrics(metrics: Mapping[str, Any], path: str, *, final: bool) -> None:
    prefix = "total_" if final else ""
    for key in COUNTS:
        value = metrics.get(prefix + key)
        if value is not None and not _is_count(value):
            raise AtifError(f"{path}.{prefix}{key}", "must be a non-negative integer")
    cost = metrics.get(f"{prefix}cost_usd")
    if cost is not None and not (is_amount(cost) and cost >= 0):
        raise AtifError(f"{path}.{prefix}cost_usd", "must be a non-negative number")


def _is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())


def _subagents(trajectories: object, prefix: str, warnings: list[str]) -> None:
    seen: set[str] = set()
    for index, trajectory in enumerate(_list(trajectories, f"{prefix}subagent_trajectories")):
        path = f"{prefix}subagent_trajectories[{index}]"
        trajectory = _mapping(trajectory, path)
        name = trajectory.get("trajectory_id")
        if not isinstance(name, str) or not name:
            raise AtifError(f"{path}.trajectory_id", "is required")
        if name in seen:
            raise AtifError(f"{path}.trajectory_id", f"repeats '{name}'")
        seen.add(name)
        warnings += check_atif(trajectory, f"{path}.")


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise AtifError(path, "must be an object")
    return value


def _list(value: object, path: str) -> Iterator[Any]:
    if value is None:
        return iter(())
    if not isinstance(value, list):
        raise AtifError(path, "must be a list")
    return iter(value)


def _filled(value: object) -> bool:
    return isinstance(value, str) and value != ""
