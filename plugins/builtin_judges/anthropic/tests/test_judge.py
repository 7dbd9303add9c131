"""The judge over real HTTP: conversations, faults, parameters, and what leaves the machine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_questions import CALL, KEY, SCHEMA, Questions, needs_a_provider, request, sent

from vally import CallTokens, JudgeError, ProviderConfig
from vally.testing import MockLlm
from vally_judge_anthropic.judge import AnthropicJudge

QUESTIONS = Questions(AnthropicJudge)
ask, failure = QUESTIONS.ask, QUESTIONS.failure


def provider(url: str, **fields: Any) -> ProviderConfig:
    return ProviderConfig(**{"type": "anthropic", "base_url": url, "api_key": KEY, **fields})


def test_reminders_are_part_of_the_conversation(server: MockLlm) -> None:
    script = (
        f'!reason hm\n!say Four, I think.\n!tool submit_grade {{"score": 9}}\n!also submit_grade {{"score": 3}}\n{CALL}'
    )
    reply = ask(provider(server.url), request(script))
    assert (dict(reply.args), reply.reminders_used, reply.model) == ({"score": 4}, 2, "m")
    first, second, third = (body["messages"] for body in sent(server))
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [block["type"] for block in second[1]["content"]] == ["thinking", "text"]
    assert "it has no call of submit_grade" in second[2]["content"]
    results = third[-1]["content"]
    assert [(block["type"], block["is_error"]) for block in results] == [("tool_result", True)] * 2
    assert "score: 9 is greater than the maximum of 5" in results[0]["content"]
    assert "three is not allowed" in results[1]["content"]


def test_faults_on_the_way_to_a_valid_call(server: MockLlm) -> None:
    script = f"""\
!fail 429 times=1 retry-after=0
!fail 529 times=1 retry-after=0
!usage 100 10 40
!say I would say four.
!usage 200 20
{CALL}"""
    reply = ask(provider(server.url), request(script))
    assert (dict(reply.args), reply.reminders_used) == ({"score": 4}, 1)
    assert reply.usage == CallTokens(input_tokens=300, output_tokens=30)
    assert [request.status for request in server.requests] == [429, 529, 200, 200]


@pytest.mark.parametrize(
    ("script", "kind", "message", "requests"),
    [
        ("!fail 401", "transport", "HTTP 401: scripted failure", 1),
        ("!fail 400 no such model", "transport", "HTTP 400: no such model", 1),
        ("!fail 429 retry-after=0", "transport", "HTTP 429: scripted failure", 5),
        ("!fail 500 retry-after=0", "transport", "HTTP 500: scripted failure", 5),
        ("!say never a call", "malformed", "it has no call of submit_grade", 3),
        ("!sleep 60", "timeout", "no valid answer within 0.7s", 1),
    ],
)
def test_failures(server: MockLlm, script: str, kind: str, message: str, requests: int) -> None:
    error = failure(provider(server.url), request(script, timeout_s=0.7 if kind == "timeout" else 60))
    assert (error.kind, error.message) == (kind, message)
    assert kind == "timeout" or len(server.requests) == requests


@pytest.mark.parametrize("fault", ["!reset", "!truncate 1", "!malformed"])
def test_a_broken_connection_is_tried_again(server: MockLlm, fault: str) -> None:
    reply = ask(provider(server.url), request(f"{fault} times=1\n{CALL}"))
    assert (dict(reply.args), reply.reminders_used, len(server.requests)) == ({"score": 4}, 0, 2)


@pytest.mark.parametrize("fault", ["!reset", "!truncate 1"])
def test_a_connection_that_breaks_for_ever(server: MockLlm, fault: str) -> None:
    error = failure(provider(server.url), request(fault, timeout_s=0.5))
    assert (error.kind, error.message.split(":")[0]) == ("transport", "connection failed")


def test_a_request(server: MockLlm) -> None:
    ask(provider(server.url, model="on-the-wire"), request(CALL, seed=7, reasoning_effort="high"))
    (body,) = sent(server)
    assert body == {
        "model": "on-the-wire",
        "max_tokens": 16_384,
        "system": "You grade.",
        "messages": [{"role": "user", "content": f"Grade.\n{CALL}"}],
        "temperature": 0,
        "tools": [{"name": "submit_grade", "description": "Submit the grade.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "submit_grade"},
        "output_config": {"effort": "high"},
    }


def test_what_is_refused_is_left_out_and_stays_out(server: MockLlm) -> None:
    script = f"""\
!fail 400 times=1 temperature is deprecated for this model
!fail 400 times=1 max_tokens: 16384 > 4096, which is the maximum for this model
!fail 400 times=1 Thinking may not be enabled when tool_choice forces tool use.
{CALL}"""
    ask(provider(server.url), request(script), request(CALL), request(CALL, model="other"))
    bodies = sent(server)
    assert ["temperature" in body for body in bodies] == [True, False, False, False, False, True]
    assert [body["max_tokens"] for body in bodies] == [16_384, 16_384, 4_096, 4_096, 4_096, 16_384]
    assert ["tool_choice" in body for body in bodies] == [True, True, True, False, False, True]


def test_an_answer_by_schema(server: MockLlm) -> None:
    by_schema = provider(server.url, answer="schema")
    reply = ask(by_schema, request('!say Four.\n!say {"score": 9}\n!say {"score": 4}', reasoning_effort="low"))
    assert (dict(reply.args), reply.reminders_used) == ({"score": 4}, 2)
    first, second, _ = sent(server)
    assert first["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert "tools" not in first
    assert "one JSON object" in second["messages"][-1]["content"]


def test_a_version_in_the_address_is_left_out_with_a_warning(server: MockLlm, caplog: pytest.LogCaptureFixture) -> None:
    ask(provider(f"{server.url}/v1/"), request(CALL))
    assert server.requests[0].path == "/v1/messages"
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        f"judge_provider.baseUrl: '/v1' at its end is ignored; write '{server.url}'"
    ]


MESSAGE = {"content": [{"type": "tool_use", "id": "t", "name": "submit_grade", "input": {"score": 4}}]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"api_key": KEY}, {"x-api-key": KEY}),
        ({"api_key": None, "bearer_token": "tok"}, {"authorization": "Bearer tok"}),
        ({"api_key": None}, {}),
        ({"headers": {"X-Api-Key": "own", "X-Team": "evals"}}, {"x-api-key": "own", "x-team": "evals"}),
    ],
)
def test_nothing_but_own_headers_leaves(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], expected: dict[str, str]
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "ambient-secret")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Ambient: ambient-secret")
    endpoint.give(MESSAGE)
    ask(provider(endpoint.url, **fields), request())
    (headers,) = endpoint.headers
    technical = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
    assert {name: value for name, value in headers.items() if name not in technical} == {
        "anthropic-version": "2023-06-01",
        **expected,
    }


def test_usage_is_what_the_endpoint_reports(endpoint: Any) -> None:
    endpoint.give(MESSAGE)
    assert ask(provider(endpoint.url), request()).usage is None
    endpoint.give({**MESSAGE, "usage": {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": None}})
    endpoint.answers.pop(0)
    assert ask(provider(endpoint.url), request()).usage == CallTokens(input_tokens=9)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"content": [], "stop_reason": "max_tokens"}, "it was cut off at the limit of output tokens"),
        ({"content": [{"type": "text", "text": " "}], "stop_reason": "refusal"}, "it is a refusal"),
        ({"content": "nonsense"}, "it has no call of submit_grade"),
        ({"content": [{"type": "tool_use", "name": "other", "input": {}}]}, "there is no tool 'other'"),
        (
            {"content": [{"type": "tool_use", "name": "submit_grade", "input": [1]}]},
            "the arguments are not a JSON object",
        ),
    ],
)
def test_answers_without_a_valid_call(endpoint: Any, body: Any, problem: str) -> None:
    endpoint.give(body)
    error = failure(provider(endpoint.url), request())
    assert (error.kind, error.message) == ("malformed", problem)
    assert len(endpoint.bodies) == 3
    blocks = [block for message in endpoint.bodies[2]["messages"] for block in message["content"] if message["content"]]
    assert not [block for block in blocks if isinstance(block, dict) and block.get("text", "x").strip() == ""]


@pytest.mark.parametrize(
    ("status", "content_type", "body", "message"),
    [
        (403, "text/html", "<html>forbidden</html>", "HTTP 403"),
        (401, "application/json", json.dumps({"error": {"message": f"bad key {KEY}"}}), "HTTP 401: bad key <redacted>"),
        (307, "text/plain", "over there", "HTTP 307: over there"),
    ],
)
def test_odd_endpoints(endpoint: Any, status: int, content_type: str, body: str, message: str) -> None:
    endpoint.give_text(body, status=status, content_type=content_type)
    error = failure(provider(endpoint.url), request(timeout_s=30))
    assert (error.kind, error.message) == ("transport", message)
    assert endpoint.paths == ["/v1/messages"]


def test_preflight(server: MockLlm) -> None:
    QUESTIONS.preflight(provider(server.url))
    assert sent(server)[0]["model"] == "m"
    with pytest.raises(JudgeError, match="HTTP 401: invalid API key"):
        QUESTIONS.preflight(provider(server.url, api_key="wrong"))


def test_it_needs_a_provider() -> None:
    needs_a_provider(AnthropicJudge)
