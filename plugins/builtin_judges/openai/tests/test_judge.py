"""The judge over real HTTP: conversations, faults, parameters, and what leaves the machine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_questions import CALL, KEY, SCHEMA, Questions, needs_a_provider, request, sent

from vally import CallTokens, Cost, JudgeError, ProviderConfig, ToolSchema
from vally.testing import MockLlm
from vally_judge_openai.judge import OpenAiJudge

WIRES = ("completions", "responses")
QUESTIONS = Questions(OpenAiJudge)
ask, failure = QUESTIONS.ask, QUESTIONS.failure


def provider(url: str, **fields: Any) -> ProviderConfig:
    return ProviderConfig(**{"type": "openai", "base_url": f"{url}/v1", "api_key": KEY, **fields})


def conversation(body: Any) -> list[Any]:
    """The messages of a request in either dialect."""
    messages: list[Any] = body["messages"] if "messages" in body else body["input"]
    return messages


@pytest.mark.parametrize("wire", WIRES)
def test_reminders_are_part_of_the_conversation(server: MockLlm, wire: str) -> None:
    script = '!say Four, I think.\n!tool submit_grade {"score": 9}\n!also submit_grade {"score": 3}\n' + (
        '!tool submit_grade {"score": 4}'
    )
    reply = ask(provider(server.url, wire_api=wire), request(script))
    assert (dict(reply.args), reply.reminders_used, reply.model) == ({"score": 4}, 2, "m")
    first, second, third = map(conversation, sent(server))
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert "it has no call of submit_grade" in json.dumps(second[len(first) :])
    reminded = json.dumps(third[len(second) :])
    assert "score: 9 is greater than the maximum of 5" in reminded
    assert "three is not allowed" in reminded
    assert server.requests[-1].step == 2


@pytest.mark.parametrize("wire", WIRES)
def test_faults_on_the_way_to_a_valid_call(server: MockLlm, wire: str) -> None:
    script = """\
!fail 429 times=1 retry-after=0
!fail 500 times=1 retry-after=0
!usage 100 10
!say I would say four.
!usage 200 20
!tool submit_grade {"score": 4}"""
    reply = ask(provider(server.url, wire_api=wire), request(script))
    assert (dict(reply.args), reply.reminders_used) == ({"score": 4}, 1)
    assert reply.usage == CallTokens(input_tokens=300, output_tokens=30)
    assert [request.status for request in server.requests] == [429, 500, 200, 200]


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
@pytest.mark.parametrize("wire", WIRES)
def test_failures(server: MockLlm, wire: str, script: str, kind: str, message: str, requests: int) -> None:
    timeout = 0.7 if kind == "timeout" else 60
    error = failure(provider(server.url, wire_api=wire), request(script, timeout_s=timeout))
    assert (error.kind, error.message) == (kind, message)
    assert kind == "timeout" or len(server.requests) == requests


@pytest.mark.parametrize("fault", ["!reset", "!truncate 1", "!malformed"])
def test_a_broken_connection_is_tried_again(server: MockLlm, fault: str) -> None:
    reply = ask(provider(server.url), request(f'{fault} times=1\n!tool submit_grade {{"score": 4}}'))
    assert (dict(reply.args), reply.reminders_used, len(server.requests)) == ({"score": 4}, 0, 2)


@pytest.mark.parametrize("fault", ["!reset", "!truncate 1"])
def test_a_connection_that_breaks_for_ever(server: MockLlm, fault: str) -> None:
    error = failure(provider(server.url), request(fault, timeout_s=0.5))
    assert (error.kind, error.message.split(":")[0]) == ("transport", "connection failed")


def test_nobody_listens() -> None:
    with MockLlm() as server:
        url = server.url
    error = failure(provider(url), request(timeout_s=0.5))
    assert (error.kind, error.message.split(":")[0]) == ("transport", "connection failed")


def test_what_was_spent_before_the_time_was_up_is_told(server: MockLlm) -> None:
    script = "!usage 100 10\n!say hm\n!sleep 60\n!say never"
    error = failure(provider(server.url), request(script, timeout_s=3))
    assert (error.kind, error.usage) == ("timeout", {"input_tokens": 100, "output_tokens": 10})


def test_a_request_for_a_chat_completion(server: MockLlm) -> None:
    ask(provider(server.url, model="on-the-wire"), request(CALL, seed=7, reasoning_effort="xhigh"))
    (body,) = sent(server)
    tool = {"name": "submit_grade", "description": "Submit the grade.", "parameters": SCHEMA}
    assert body == {
        "model": "on-the-wire",
        "messages": [
            {"role": "system", "content": "You grade."},
            {"role": "user", "content": f"Grade.\n{CALL}"},
        ],
        "temperature": 0,
        "seed": 7,
        "reasoning_effort": "xhigh",
        "tools": [{"type": "function", "function": tool}],
        "tool_choice": {"type": "function", "function": {"name": "submit_grade"}},
    }


def test_a_request_for_a_response(server: MockLlm) -> None:
    ask(provider(server.url, wire_api="responses"), request(CALL, seed=7, reasoning_effort="low"))
    (body,) = sent(server)
    tool = {"name": "submit_grade", "description": "Submit the grade.", "parameters": SCHEMA}
    assert body == {
        "model": "m",
        "instructions": "You grade.",
        "input": [{"role": "user", "content": f"Grade.\n{CALL}"}],
        "temperature": 0,
        "reasoning": {"effort": "low"},
        "store": False,
        "tools": [{"type": "function", **tool, "strict": False}],
        "tool_choice": {"type": "function", "name": "submit_grade"},
    }


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_refused_is_left_out_and_stays_out(server: MockLlm, wire: str) -> None:
    script = f"""\
!fail 400 times=1 Unsupported value: 'temperature' does not support 0 with this model.
!fail 400 times=1 tool_choice is not supported
{CALL}"""
    ask(provider(server.url, wire_api=wire), request(script), request(CALL), request(CALL, model="other"))
    bodies = sent(server)
    assert ["temperature" in body for body in bodies] == [True, False, False, False, True]
    assert ["tool_choice" in body for body in bodies] == [True, True, False, False, True]
    assert all(body["tools"] for body in bodies)


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_by_schema(server: MockLlm, wire: str) -> None:
    by_schema = provider(server.url, wire_api=wire, answer="schema")
    reply = ask(by_schema, request('!say Four.\n!say {"score": 9}\n!say {"score": 4}'))
    assert (dict(reply.args), reply.reminders_used) == ({"score": 4}, 2)
    first, second, _ = sent(server)
    wanted = first["text"]["format"] if wire == "responses" else first["response_format"]["json_schema"]
    assert (wanted["name"], wanted["schema"], wanted["strict"]) == ("submit_grade", SCHEMA, True)
    assert "tools" not in first
    assert "one JSON object" in json.dumps(conversation(second)[-1])


def test_a_schema_that_cannot_be_followed_to_the_letter(server: MockLlm) -> None:
    for schema, strict in (({"type": "object", "properties": {"score": {}}}, False), (SCHEMA, True)):
        tool = ToolSchema(name="submit_grade", description="d", parameters=schema)
        ask(provider(server.url, answer="schema"), request('!grade {"score": 4}', tool=tool))
        assert sent(server)[-1]["response_format"]["json_schema"]["strict"] is strict


def test_the_address_of_azure(server: MockLlm) -> None:
    for path, version in (("", None), ("/openai/v1", None), ("", "2024-10-21"), ("/openai", "2024-10-21")):
        ask(provider(server.url, type="azure", base_url=server.url + path, api_version=version), request(CALL))
    v1, deployment = "/openai/v1/chat/completions", "/openai/deployments/m/chat/completions?api-version=2024-10-21"
    assert [request.path for request in server.requests] == [v1, v1, deployment, deployment]
    ask(provider(server.url, type="azure", base_url=server.url, wire_api="responses"), request(CALL))
    assert server.requests[-1].path == "/openai/v1/responses"


COMPLETION = {
    "choices": [
        {"message": {"tool_calls": [{"function": {"name": "submit_grade", "arguments": '{"score": 4}'}}]}},
    ]
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"api_key": KEY}, {"authorization": f"Bearer {KEY}"}),
        ({"api_key": None, "bearer_token": "tok"}, {"authorization": "Bearer tok"}),
        ({"api_key": KEY, "type": "azure"}, {"api-key": KEY}),
        ({"api_key": KEY, "type": "azure", "api_version": "2024-10-21"}, {"api-key": KEY}),
        ({"api_key": None, "type": "azure", "bearer_token": "tok"}, {"authorization": "Bearer tok"}),
        ({"api_key": None}, {}),
        ({"headers": {"Authorization": "Basic x", "X-Team": "evals"}}, {"authorization": "Basic x", "x-team": "evals"}),
    ],
)
def test_nothing_but_own_headers_leaves(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], expected: dict[str, str]
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "ambient-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient-secret")
    endpoint.give(COMPLETION)
    ask(provider(endpoint.url, **fields), request())
    (headers,) = endpoint.headers
    technical = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
    assert {name: value for name, value in headers.items() if name not in technical} == expected


def test_usage_and_cost_are_what_the_endpoint_reports(endpoint: Any) -> None:
    endpoint.give(COMPLETION)
    assert ask(provider(endpoint.url), request()).usage is None
    endpoint.give({**COMPLETION, "usage": {"prompt_tokens": 7, "completion_tokens": None, "cost": 0.25}})
    endpoint.answers.pop(0)
    reply = ask(provider(endpoint.url), request())
    assert reply.usage == CallTokens(input_tokens=7)
    assert reply.cost == Cost(provider="openai", unit="usd", amount=0.25)


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"message": {"content": "x"}, "finish_reason": "length"}, "it was cut off at the limit of output tokens"),
        ({"message": {}, "finish_reason": "content_filter"}, "it was withheld by a content filter"),
        ({"message": {"content": None, "refusal": "I will not."}}, "it is a refusal: I will not."),
        ({}, "it has no call of submit_grade"),
        (
            {"message": {"tool_calls": [{"function": {"name": "other", "arguments": "{}"}}]}},
            "there is no tool 'other'",
        ),
        (
            {"message": {"tool_calls": [{"function": {"name": "submit_grade", "arguments": '{"score":'}}]}},
            "the arguments are not valid JSON: Expecting value: line 1 column 10 (char 9)",
        ),
        ({"message": {"tool_calls": [{}]}}, "there is no tool 'None'"),
    ],
)
def test_answers_without_a_valid_call(endpoint: Any, choice: Any, problem: str) -> None:
    endpoint.give({"choices": [choice]})
    error = failure(provider(endpoint.url), request())
    assert (error.kind, error.message) == ("malformed", problem)
    assert len(endpoint.bodies) == 3


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "it was cut off at the limit of output tokens"),
        ({"incomplete_details": {"reason": "content_filter"}}, "it was withheld by a content filter"),
        ({"output": [{"content": [{"type": "refusal", "refusal": "No."}]}]}, "it is a refusal: No."),
        ({"output": [{"type": "function_call", "name": "other", "arguments": "{}"}]}, "there is no tool 'other'"),
        ({"output": "nonsense"}, "it has no call of submit_grade"),
    ],
)
def test_responses_without_a_valid_call(endpoint: Any, body: Any, problem: str) -> None:
    endpoint.give(body)
    error = failure(provider(endpoint.url, wire_api="responses"), request())
    assert (error.kind, error.message) == ("malformed", problem)


def test_arguments_that_are_no_json_do_not_go_back(endpoint: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "submit_grade", "arguments": '{"score":'}}
    endpoint.give({"choices": [{"message": {"content": None, "tool_calls": [call], "reasoning_content": "hm"}}]})
    endpoint.give(COMPLETION)
    ask(provider(endpoint.url), request())
    echoed = endpoint.bodies[1]["messages"][2]
    assert echoed["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "reasoning_content" not in echoed


@pytest.mark.parametrize(
    ("status", "content_type", "body", "message"),
    [
        (403, "text/html", "<html>forbidden</html>", "HTTP 403"),
        (404, "application/json", '{"error": "no route"}', "HTTP 404: no route"),
        (401, "application/json", json.dumps({"error": {"message": f"bad key {KEY}"}}), "HTTP 401: bad key <redacted>"),
        (307, "text/plain", "over there", "HTTP 307: over there"),
    ],
)
def test_odd_endpoints(endpoint: Any, status: int, content_type: str, body: str, message: str) -> None:
    endpoint.give_text(body, status=status, content_type=content_type)
    error = failure(provider(endpoint.url), request(timeout_s=30))
    assert (error.kind, error.message) == ("transport", message)
    assert endpoint.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", "<html>one moment</html>"),
        ("application/json", "[1]"),
        ("application/json", json.dumps({"error": {"code": 503, "message": "one moment"}})),
        ("application/json", json.dumps({"choices": [{**COMPLETION["choices"][0], "error": {"code": 502}}]})),
        ("application/json", json.dumps({"choices": [{"message": {"content": ""}, "finish_reason": "error"}]})),
        ("text/event-stream", 'data: {"choices": [{"delta": {}}], "error": {"code": "server_error"}}\n\n'),
    ],
)
def test_what_is_no_answer_is_asked_for_again(endpoint: Any, content_type: str, body: str) -> None:
    endpoint.give_text(body, content_type=content_type)
    endpoint.give_text(json.dumps(COMPLETION), content_type="text/plain")
    reply = ask(provider(endpoint.url), request())
    assert (dict(reply.args), reply.reminders_used, len(endpoint.bodies)) == ({"score": 4}, 0, 2)


@pytest.mark.parametrize("wire", WIRES)
def test_what_an_answer_that_broke_off_cost_is_counted(endpoint: Any, wire: str) -> None:
    error = {"code": 402, "message": "no credits"}
    choices = [{"message": {"content": "Half an"}, "error": error, "finish_reason": "error"}]
    told: dict[str, Any] = {"choices": choices, "usage": {"prompt_tokens": 7, "completion_tokens": 2, "cost": 0.25}}
    if wire == "responses":
        usage = {"input_tokens": 7, "output_tokens": 2, "cost": 0.25}
        told = {"status": "failed", "output": [], "error": error, "usage": usage}
    endpoint.give(told)
    found = failure(provider(endpoint.url, wire_api=wire), request())
    assert found.usage == {"input_tokens": 7, "output_tokens": 2}
    assert found.cost == Cost(provider="openai", unit="usd", amount=0.25)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_inside_an_answer_that_stays(endpoint: Any, wire: str) -> None:
    error = {"code": 402, "message": f"no credits for {KEY}"}
    choice = {"message": {"content": "Half an"}, "error": error, "finish_reason": "error"}
    failed = {"status": "failed", "output": [{"type": "message"}], "error": error}
    endpoint.give({"choices": [choice]} if wire == "completions" else failed)
    found = failure(provider(endpoint.url, wire_api=wire), request())
    assert (found.kind, found.message) == ("transport", "HTTP 402: no credits for <redacted>")
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_preflight(server: MockLlm, wire: str) -> None:
    QUESTIONS.preflight(provider(server.url, wire_api=wire))
    assert sent(server)[0]["model"] == "m"
    with pytest.raises(JudgeError, match="HTTP 401: invalid API key"):
        QUESTIONS.preflight(provider(server.url, wire_api=wire, api_key="wrong"))


def test_it_needs_a_provider() -> None:
    needs_a_provider(OpenAiJudge)
