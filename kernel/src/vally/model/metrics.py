"""Metrics of a trajectory, computed from its events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from vally.model.jsonio import MAX_INTEGER
from vally.model.trajectory import Cost, Event, Metrics, ModelTokens, TokenUsage

UNKNOWN = "unknown"


@dataclass(slots=True)
class _Tokens:
    """Sums over the `token_usage` events seen so far."""

    sums: Counter[str] = field(default_factory=Counter)
    by_model: dict[str, ModelTokens] = field(default_factory=dict)
    amounts: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    bad_counts: int = 0

    def add(self, data: Mapping[str, Any]) -> None:
        read = {key: self._count(data.get(key)) for key in _TOKEN_KEYS}
        self.sums.update(read)
        self.sums["calls"] += 1
        model = data.get("model")
        tokens = self.by_model.setdefault(model if isinstance(model, str) and model else UNKNOWN, ModelTokens())
        tokens.input_tokens = saturated(tokens.input_tokens + read["inputTokens"])
        tokens.output_tokens = saturated(tokens.output_tokens + read["outputTokens"])
        tokens.call_count += 1
        self._add_cost(data.get("cost"))

    def _count(self, value: object) -> int:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_count(value):
            self.bad_counts += 1
            return 0
        return int(value)

    def _add_cost(self, cost: object) -> None:
        if not isinstance(cost, Mapping):
            return
        provider, unit, amount = cost.get("provider"), cost.get("unit"), cost.get("amount")
        if isinstance(provider, str) and isinstance(unit, str) and is_amount(amount):
            self.amounts.setdefault((provider, unit), []).append(amount)

    def usage(self) -> TokenUsage:
        sums = {key: saturated(value) for key, value in self.sums.items()}
        costs = [
            Cost(provider=provider, unit=unit, amount=math.fsum(amounts))
            for (provider, unit), amounts in self.amounts.items()
        ]
        given = {"cost": costs[0]} if len(costs) == 1 else {"costs": costs} if costs else {}
        return TokenUsage(
            input_tokens=sums.get("inputTokens", 0),
            output_tokens=sums.get("outputTokens", 0),
            total_tokens=saturated(self.sums["inputTokens"] + self.sums["outputTokens"]),
            cache_read_tokens=sums.get("cacheReadTokens", 0),
            cache_write_tokens=sums.get("cacheWriteTokens", 0),
            call_count=sums.get("calls", 0),
            by_model=self.by_model,
            **given,
        )


_TOKEN_KEYS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


def _is_count(value: float) -> bool:
    if isinstance(value, int):
        return value >= 0
    return math.isfinite(value) and value >= 0 and value.is_integer()


def is_amount(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; an integer beyond all floats is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def saturated(value: int) -> int:
    """The value, or the largest integer that every JSON reader keeps."""
    return min(value, MAX_INTEGER)


def compute_metrics(events: Iterable[Event], warnings: list[str] | None = None) -> Metrics:
    """Count over events; `wall_time_ms` stays unset. At most one warning about token counts goes to `warnings`."""
    tokens, counts = _Tokens(), Counter[str]()
    tools, skills = Counter[str](), Counter[str]()
    simulated = 0
    for event in events:
        counts[event.type] += 1
        if event.type == "token_usage":
            tokens.add(event.data)
        elif event.type == "tool_call":
            tools[_name(event.data.get("toolName"))] += 1
            simulated += event.data.get("simulated") is True
        elif event.type == "skill_activation":
            skills[_name(event.data.get("name"))] += 1
    if tokens.bad_counts and warnings is not None:
        warnings.append(f"{tokens.bad_counts} token count(s) are not whole numbers of at least 0 and count as 0")
    return Metrics(
        token_usage=tokens.usage(),
        tool_call_count=counts["tool_call"],
        tool_call_breakdown=dict(tools),
        simulated_tool_call_count=simulated,
        skill_activation_count=counts["skill_activation"],
        skill_activation_breakdown=dict(skills),
        turn_count=counts["turn_end"],
        error_count=counts["error"],
    )


def _name(value: object) -> str:
    return value if isinstance(value, str) and value else UNKNOWN


def settle_metrics(reported: Metrics | None, events: Iterable[Event], warnings: list[str] | None = None) -> Metrics:
    """Metrics of an executor's trajectory: computed, with the `wall_time_ms` and the further keys it reported."""
    computed = compute_metrics(events, warnings)
    if reported is None:
        return computed
    wall_time = None if reported.wall_time_ms is None else saturated(max(0, reported.wall_time_ms))
    return computed.model_copy(update={"wall_time_ms": wall_time, **(reported.model_extra or {})})
