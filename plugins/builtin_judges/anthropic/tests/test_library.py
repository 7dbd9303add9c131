"""The library itself accepts what the mock model server answers, streamed and plain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from vally.testing import MockLlm

SCRIPT = '!reason Let me see.\n!tool look {"path": "a b"}\n!also look {}\n!usage 100 20 30\n!say All done.'
QUESTION: Any = {"role": "user", "content": SCRIPT}


@pytest.fixture
def client() -> Iterator[anthropic.Anthropic]:
    with MockLlm() as server, anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as made:
        yield made


def test_plain(client: anthropic.Anthropic) -> None:
    first = client.messages.create(model="m", max_tokens=99, messages=[QUESTION])
    assert [block.type for block in first.content] == ["thinking", "tool_use", "tool_use"]
    results: Any = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in first.content
        if block.type == "tool_use"
    ]
    turns: Any = [QUESTION, first.to_param(), {"role": "user", "content": results}]
    second = client.messages.create(model="m", max_tokens=99, messages=turns)
    (block,) = second.content
    assert (block.type, getattr(block, "text", None)) == ("text", "All done.")
    usage = second.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (70, 30, 20)


def test_streamed(client: anthropic.Anthropic) -> None:
    with client.messages.stream(model="m", max_tokens=99, messages=[QUESTION]) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "tool_use", "tool_use"]
    assert [block.input for block in message.content if block.type == "tool_use"] == [{"path": "a b"}, {}]
    with client.messages.stream(model="m", max_tokens=99, messages=[{"role": "user", "content": "!say a b"}]) as stream:
        assert list(stream.text_stream) == ["a ", "b"]


def test_the_rest(client: anthropic.Anthropic) -> None:
    assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x" * 40}]).input_tokens == 10
    assert [model.id for model in client.models.list()] == ["mock-model"]
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "!fail 429"}])
