"""Counts of tokens: agents tell them per prompt, each in its own way."""

from __future__ import annotations

from dataclasses import dataclass

from vally_executor_acp.agent import Params, mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one prompt, or of a session so far; `input` holds the cached ones."""

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def since(self, before: Tokens | None) -> Tokens:
        """What was added."""
        if before is None:
            return self
        return Tokens(
            input=max(0, self.input - before.input),
            output=max(0, self.output - before.output),
            cache_read=_less(self.cache_read, before.cache_read),
            cache_write=_less(self.cache_write, before.cache_write),
            reasoning=_less(self.reasoning, before.reasoning),
        )


def read_tokens(response: Params) -> Tokens | None:
    """The counts in the answer to a prompt; None when there are none, or nothing but zeros."""
    usage = mapping(response.get("usage"))
    if not usage:
        counts = mapping(mapping(mapping(response.get("_meta")).get("quota")).get("token_count"))
        usage = {"inputTokens": counts.get("input_tokens"), "outputTokens": counts.get("output_tokens")}
    sent, received = _count(usage.get("inputTokens")), _count(usage.get("outputTokens"))
    if not sent and not received:
        return None
    read, written = _count(usage.get("cachedReadTokens")), _count(usage.get("cachedWriteTokens"))
    return Tokens(
        input=(sent or 0) + _apart(usage, sent or 0, received or 0, (read or 0) + (written or 0)),
        output=received or 0,
        cache_read=read,
        cache_write=written,
        reasoning=_count(usage.get("thoughtTokens")),
    )


def read_model(response: Params) -> str | None:
    """The model that answered, where the agent tells it."""
    models = mapping(mapping(response.get("_meta")).get("quota")).get("model_usage")
    name = mapping(models[0]).get("model") if isinstance(models, list) and models else None
    return name if isinstance(name, str) else None


def _apart(usage: Params, sent: int, received: int, cached: int) -> int:
    """The cached tokens, when the input does not hold them: the total tells."""
    total = _count(usage.get("totalTokens"))
    return cached if total is not None and cached and total == sent + received + cached else 0


def _less(value: int | None, before: int | None) -> int | None:
    return value if value is None else max(0, value - (before or 0))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
