"""Token counts that run on over a session: what of them belongs to this turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally_executor_command.dialects.jsonl import count, mapping

Counts = Mapping[str, int | float]


def since(now: Mapping[str, Counts], before: Mapping[str, Any]) -> dict[str, dict[str, int | float]]:
    """Per model, what was counted since `before`.

    A model whose counts are lower than before was counted anew, as by an agent that has lost its session.
    """
    return {model: _difference(counts, mapping(before.get(model))) for model, counts in now.items()}


def _difference(now: Counts, before: Mapping[str, Any]) -> dict[str, int | float]:
    earlier = {key: before.get(key, 0) for key in now}
    if any(value < earlier[key] for key, value in now.items()):
        return dict(now)
    return {key: value - earlier[key] for key, value in now.items()}


def usage_data(
    model: str | None,
    *,
    input_tokens: int | float,
    output_tokens: int | float,
    cache_read: int | float | None = None,
    cache_write: int | float | None = None,
    reasoning: int | float | None = None,
    cost: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The data of a `token_usage` event; `input_tokens` has the cached ones in it already.

    Without a `model`, which some streams do not name, whoever runs the agent adds it.
    """
    return {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "model": model,
        "cacheReadTokens": cache_read,
        "cacheWriteTokens": cache_write,
        "reasoningTokens": reasoning,
        "cost": cost,
    }


def price(value: object) -> int | float:
    """An amount of money, 0 when there is none."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else 0


def dollars(provider: str, amount: object) -> dict[str, Any] | None:
    """A price in dollars, when there is one."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 < amount < float("inf"):
        return None
    return {"provider": provider, "unit": "usd", "amount": amount}


def counts(found: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, int]:
    """Whole counts under names of our own; `keys` maps those to the agent's."""
    return {own: count(found.get(theirs)) for own, theirs in keys.items()}
