"""Canned answers from the tool calls of a trajectory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from vally import VallyError, canonical_json, compact_json, plain_value

if TYPE_CHECKING:
    from vally import Event, Trajectory

Conflict = Literal["first", "last", "error"]
_MOST_INTEGER = 2**53 - 1
SEPARATORS = ("__", "-", "_", ".", "/", ":")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A tool call with its result. `tool` is the name that the server knows it by."""

    tool: str
    server: str | None
    arguments: Any
    result: Any

    @property
    def key(self) -> str:
        """What makes calls the same."""
        return canonical_json([self.tool, self.server, plain_value(self.arguments).value])

    def override(self) -> dict[str, Any]:
        """The entry of `simulation.tool_overrides`."""
        server = {"server": self.server} if self.server is not None else {}
        return {"tool": self.tool, **server, "arguments": self.arguments, "result": self.result}


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Collects calls in the order of first use. `wanted` chooses by tool name; without it MCP tools are taken."""

    wanted: Callable[[str], bool] | None
    max_bytes: int
    on_conflict: Conflict
    warnings: list[str] = field(default_factory=list)

    def overrides(self, trajectory: Trajectory) -> list[dict[str, Any]]:
        """The entries; raises `VallyError` for a conflict that is to be an error."""
        kept: dict[str, RecordedCall] = {}
        for call in self._calls(trajectory.events):
            known = kept.get(call.key)
            if known is None:
                kept[call.key] = call
            elif not _equal(known.result, call.result):
                self._settle(kept, call)
        return [call.override() for call in kept.values()]

    def _settle(self, kept: dict[str, RecordedCall], call: RecordedCall) -> None:
        shown = f"'{call.tool}' with arguments {compact_json(call.arguments)[:200]}"
        if self.on_conflict == "error":
            raise VallyError(
                f"tool {shown} gave different results",
                where="--on-conflict",
                hints=("take the first or the last with --on-conflict",),
            )
        self.warnings.append(f"tool {shown} gave different results; the {self.on_conflict} is taken")
        if self.on_conflict == "last":
            kept[call.key] = call

    def _calls(self, events: Sequence[Event]) -> Iterator[RecordedCall]:
        results = _results(events)
        for position, event in enumerate(events):
            if event.type != "tool_call":
                continue
            name, server = _text(event.data.get("toolName")), _text(event.data.get("mcpServer")) or None
            tool = plain_name(name, server)
            if not (self.wanted(name) or self.wanted(tool) if self.wanted else server is not None):
                continue
            result = results.get(position)
            if result is None or result.get("success") is False:
                why = "has no result" if result is None else "failed"
                self.warnings.append(f"a call of '{name}' {why} and is left out")
                continue
            if server is None:
                self.warnings.append(f"the server of '{name}' was not recorded; its entry fits every server")
            arguments = event.data.get("arguments")
            if not _fits_specs(arguments):
                self.warnings.append(f"a call of '{name}' has a number of more digits than specs hold and is left out")
                continue
            yield RecordedCall(
                tool=tool,
                server=server,
                arguments={} if arguments is None else arguments,
                result=self._fitted(result.get("result"), name),
            )

    def _fitted(self, result: Any, name: str) -> Any:
        text = result if isinstance(result, str) else compact_json(result)
        data = text.encode("utf-8", "replace")
        if len(data) <= self.max_bytes:
            # Agents get what is no text as its JSON, so the JSON with all the digits is the same to them.
            return result if _fits_specs(result) else _exact_json(result)
        self.warnings.append(f"a result of '{name}' was cut from {len(data)} to {self.max_bytes} bytes")
        return data[: self.max_bytes].decode("utf-8", "ignore")


def plain_name(name: str, server: str | None) -> str:
    """The name of a tool without the name of its server, which many agents put before it."""
    if not server:
        return name
    rest = name.removeprefix("mcp__")
    for separator in SEPARATORS:
        prefix = server + separator
        if rest.startswith(prefix) and len(rest) > len(prefix):
            return rest[len(prefix) :]
    return name


def _results(events: Sequence[Event]) -> dict[int, Mapping[str, Any]]:
    """The results by the positions of their calls; some agents use a call id again in another turn, or none at all."""
    waiting: dict[tuple[str | None, str], int] = {}
    results: dict[int, Mapping[str, Any]] = {}
    for position, event in enumerate(events):
        key = _id(event)
        if event.type == "tool_call" and key[1]:
            waiting[key] = position
        elif event.type == "tool_result" and key in waiting:
            results[waiting.pop(key)] = event.data
    return results


def _id(event: Event) -> tuple[str | None, str]:
    return event.agent_id, _text(event.data.get("toolCallId"))


def _fits_specs(value: object) -> bool:
    """Whether a spec can hold a value as it is: its integers are those that every reader of JSON keeps."""
    if isinstance(value, Mapping):
        return all(_fits_specs(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return all(_fits_specs(item) for item in value)
    return not isinstance(value, int) or abs(value) <= _MOST_INTEGER


def _exact_json(value: object) -> str:
    return json.dumps(plain_value(value).value, ensure_ascii=False)


def _equal(one: Any, other: Any) -> bool:
    return canonical_json(plain_value(one).value) == canonical_json(plain_value(other).value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
