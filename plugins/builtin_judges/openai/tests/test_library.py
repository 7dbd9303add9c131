"""The library itself accepts what the mock model server answers, streamed and plain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from vally.testing import MockLlm

SCRIPT = '!reason Let me see.\n!tool look {"path": "a b"}\n!also look {}\n!usage 100 20 30\n!say All done.'
QUESTION: Any = {"role": "user", "content": SCRIPT}


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with MockLlm() as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as made:
        yield made


def test_chat_completions(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(model="m", messages=[QUESTION]).choices[0].message
    calls: Any = first.tool_calls
    assert [call.function.arguments for call in calls] == ['{"path": "a b"}', "{}"]
    results: Any = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls]
    turns = [QUESTION, first.model_dump(exclude_none=True), *results]
    second = client.chat.completions.create(model="m", messages=turns)
    assert second.choices[0].message.content == "All done."
    assert second.usage is not None
    assert (second.usage.prompt_tokens, second.usage.completion_tokens) == (100, 20)


def test_chat_completions_streamed(client: openai.OpenAI) -> None:
    options: Any = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=[QUESTION], stream_options=options) as stream:
        final = stream.get_final_completion()
    calls: Any = final.choices[0].message.tool_calls
    assert [call.function.arguments for call in calls] == ['{"path": "a b"}', "{}"]
    assert final.usage is not None


def test_responses(client: openai.OpenAI) -> None:
    first = client.responses.create(model="m", input=SCRIPT)
    assert [item.type for item in first.output] == ["reasoning", "function_call", "function_call"]
    results = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
        for item in first.output
        if item.type == "function_call"
    ]
    items: Any = [QUESTION, *[item.model_dump(exclude_none=True) for item in first.output], *results]
    second = client.responses.create(model="m", input=items)
    assert second.output_text == "All done."
    assert second.usage is not None
    assert (second.usage.input_tokens, second.usage.input_tokens_details.cached_tokens) == (100, 30)


def test_responses_streamed(client: openai.OpenAI) -> None:
    with client.responses.stream(model="m", input=SCRIPT) as stream:
        final = stream.get_final_response()
    assert [item.type for item in final.output] == ["reasoning", "function_call", "function_call"]
    with client.responses.stream(model="m", input="!say a b") as stream:
        assert [event.delta for event in stream if event.type == "response.output_text.delta"] == ["a ", "b"]


def test_the_rest(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["mock-model"]
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="m", input="!fail 429")
