"""Reading answers: what is common to both kinds of request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally import CallTokens, Cost, SubmittedCall, submitted_call

CUT_OFF = "it was cut off at the limit of output tokens"
FILTERED = "it was withheld by a content filter"


def mapping(value: object) -> Mapping[str, Any]:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def call_of(name: object, arguments: object, tool: str) -> SubmittedCall:
    """One call of a tool; of any other tool than the one on offer it is a mistake."""
    if name != tool:
        return SubmittedCall(problem=f"there is no tool {str(name)[:60]!r}")
    return submitted_call(arguments)


def tokens(usage: object, input_key: str, output_key: str) -> CallTokens | None:
    """Token counts, when the endpoint told any."""
    counts = mapping(usage)
    found = [_count(counts.get(key)) for key in (input_key, output_key)]
    if found == [None, None]:
        return None
    return CallTokens(input_tokens=found[0] or 0, output_tokens=found[1] or 0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def cost(usage: object, provider: str) -> Cost | None:
    """The price, when the endpoint told one, as routers of models do: in dollars."""
    amount = mapping(usage).get("cost")
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 <= amount < float("inf"):
        return None
    return Cost(provider=provider, unit="usd", amount=float(amount))
