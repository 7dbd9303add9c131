"""Why an endpoint of a model gave no answer: statuses, broken connections, and errors that are told as answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from vally import EndpointError, endpoint_answer


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "no such\\nmodel"}}', "HTTP 400: no such model"),
        ('{"error": "bad"}', "HTTP 400: bad"),
        ('{"message": "bad"}', "HTTP 400: bad"),
        ('{"detail": [{"loc": ["body", "seed"]}]}', 'HTTP 400: [{"loc": ["body", "seed"]}]'),
        ("plain\x1b[31m text", "HTTP 400: plain text"),
        ("<!DOCTYPE html><p>gateway", "HTTP 400"),
        ("", "HTTP 400"),
        ('[{"error": {"message": "in a list"}}]', "HTTP 400: in a list"),
        ('{"error": {"message": "key s3cret-value and s3cret-value-2"}}', "HTTP 400: key <redacted> and <redacted>"),
    ],
)
def test_the_message_of_a_status(body: str, message: str) -> None:
    error = EndpointError.of_status(400, body, {}, ["s3cret-value", "s3cret-value-2"])
    assert (error.message, error.retryable, error.status) == (message, False, 400)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (401, False),
        (404, False),
        (408, True),
        (409, True),
        (422, False),
        (429, True),
        (500, True),
        (529, True),
    ],
)
def test_which_statuses_may_pass(status: int, retryable: bool) -> None:
    assert EndpointError.of_status(status, "", {}).retryable is retryable


@pytest.mark.parametrize(("value", "seconds"), [("3", 3), ("0.5", 0.5), ("", None), ("soon", None), ("-1", None)])
def test_the_wait_that_an_endpoint_asks_for(value: str, seconds: float | None) -> None:
    assert EndpointError.of_status(429, "", {"retry-after": value}).retry_after_s == seconds


def test_the_wait_may_be_a_date() -> None:
    for moment, least in ((datetime.now(UTC) + timedelta(seconds=60), 30), (datetime.now(UTC) - timedelta(1), 0)):
        value = format_datetime(moment, usegmt=True)
        found = EndpointError.of_status(429, "", {"retry-after": value}).retry_after_s
        assert found is not None
        assert least <= found <= 60


ERROR = {"message": "oh", "code": 500}


def broken_off(error: object, content: str = "", finish: str = "error") -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, "error": error, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("answer", "message", "retryable"),
    [
        ({"error": {"message": "slow down", "code": 429}}, "HTTP 429: slow down", True),
        ({"error": {"message": "no credit", "code": 402}, "choices": []}, "HTTP 402: no credit", False),
        ({"error": {"message": "s3cret-value is bad", "code": "odd"}}, "HTTP 502: <redacted> is bad", True),
        ({"error": "gone"}, "HTTP 502: gone", True),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "HTTP 529: busy", True),
        ({"status": "failed", "error": {"code": "server_error", "message": "oh"}, "output": []}, "HTTP 500: oh", True),
        ({"status": "failed", "error": ERROR, "output": [{"type": "message"}]}, "HTTP 500: oh", True),
        ({"error": ERROR, "choices": [{"message": {"content": ""}}]}, "HTTP 500: oh", True),
        ({"error": ERROR, "choices": [{"message": {"content": "a"}, "finish_reason": "error"}]}, "HTTP 500: oh", True),
        ({"error": ERROR, "choices": [{"message": None}]}, "HTTP 500: oh", True),
        (broken_off({"message": "no", "code": 400}), "HTTP 400: no", False),
        (broken_off({"message": "no", "code": "403"}, "Half an answer"), "HTTP 403: no", False),
        (broken_off({"message": "busy", "code": 503}, "Half an answer", "stop"), "HTTP 503: busy", True),
        (broken_off("gone"), "HTTP 502: gone", True),
        (broken_off(None), "HTTP 502: the model's answer broke off with an error", True),
    ],
)
def test_an_error_that_is_told_as_an_answer(answer: dict[str, Any], message: str, retryable: bool) -> None:
    for given in (answer, json.dumps(answer), json.dumps(answer).encode()):
        with pytest.raises(EndpointError) as caught:
            endpoint_answer(given, {"retry-after": "3"}, ["s3cret-value"])
        assert (caught.value.message, caught.value.retryable) == (message, retryable)
        assert caught.value.retry_after_s == 3


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "rate_limit_error"}, 429),
        ({"code": "insufficient_quota"}, 429),
        ({"status": "RESOURCE_EXHAUSTED"}, 429),
        ({"code": None, "type": "authentication_error"}, 401),
        ({"code": "invalid_api_key", "type": "invalid_request_error"}, 401),
        ({"type": "permission_error"}, 403),
        ({"code": "model_not_found"}, 404),
        ({"type": "invalid_request_error"}, 400),
        ({"metadata": {"error_type": "provider_unavailable"}}, 503),
        ({"code": "server_error", "type": 429}, 429),
        ({"code": 200, "type": "timeout_error"}, 504),
        ({"code": True}, 502),
        ({"code": 99_999}, 502),
        ({"code": "something else"}, 502),
        ({"code": ["odd"], "metadata": "odd"}, 502),
    ],
)
def test_the_status_that_an_error_names(error: dict[str, Any], status: int) -> None:
    found = EndpointError.of_answer({"error": error}, {})
    assert found is not None
    assert found.status == status


@pytest.mark.parametrize(
    "said",
    [
        {"choices": [{"message": {"content": "Hello."}}]},
        {"choices": [{"message": {"content": None, "tool_calls": [{}]}}]},
        {"choices": [{"message": {"refusal": "No."}}]},
        {"output": [{}]},
        {"content": [{}]},
    ],
)
def test_an_answer_beside_an_error_is_an_answer(said: dict[str, Any]) -> None:
    answer = {"error": "unimportant", **said}
    assert endpoint_answer(answer, {}) == answer
    assert endpoint_answer({"error": None}, {}) == {"error": None}


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"choices": [{"delta": {"content": "a"}}]}, {"error": ERROR, "choices": [{"delta": {}}]}], "HTTP 500: oh"),
        ([{"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 429}}]}], 'HTTP 429: {"code": 429}'),
        ([{"type": "response.failed", "response": {"status": "failed", "error": ERROR}}], "HTTP 500: oh"),
        ([{"type": "error", "code": "server_error", "message": "oh"}], "HTTP 500: oh"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}], "HTTP 529: busy"),
        ([{"choices": [{"delta": {"content": "a"}}]}, 7, None], "the endpoint's answer is not JSON"),
    ],
)
def test_an_error_in_a_stream(events: list[Any], message: str) -> None:
    lines = [": waiting", *(f"event: x\r\ndata: {json.dumps(event)}\r\n\r" for event in events), "data: [DONE]"]
    with pytest.raises(EndpointError) as caught:
        endpoint_answer("\n".join(lines), {})
    assert (caught.value.message, caught.value.retryable) == (message, True)


@pytest.mark.parametrize("given", ["<html>", '{"a": ', "", b"\xff", "[" * 100_000, "[1]", "1", "null", ["a"], None])
def test_what_is_no_answer_may_pass(given: object) -> None:
    with pytest.raises(EndpointError, match="the endpoint's answer is not ") as caught:
        endpoint_answer(given, {})
    assert (caught.value.retryable, caught.value.status) == (True, None)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert endpoint_answer(b'\xef\xbb\xbf{"a": "caf\xc3"}', {}) == {"a": "caf\ufffd"}


def test_a_router_tells_what_the_model_behind_it_said() -> None:
    def message(raw: object) -> str:
        error = {"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}}
        found = EndpointError.of_answer({"error": error}, {}, ["s3cret-value"])
        assert found is not None
        return found.message

    assert message('{"error": {"message": "too long, s3cret-value"}}').endswith("error: too long, <redacted>")
    assert message("too\nlong") == "HTTP 400: Provider returned error: too long"
    assert message("Provider returned error") == "HTTP 400: Provider returned error"
    assert message(None) == message({"odd": 1}) == "HTTP 400: Provider returned error"


def test_a_broken_connection_tells_its_first_cause() -> None:
    error = RuntimeError("wrapped")
    error.__cause__ = ConnectionResetError("reset by s3cret-value")
    found = EndpointError.of_connection(error, ["s3cret-value"])
    assert (found.message, found.retryable) == ("connection failed: reset by <redacted>", True)
    alone = EndpointError.of_connection(OSError("no route to s3cret-value"), ["s3cret-value"])
    assert alone.message == "connection failed: no route to <redacted>"
    assert EndpointError.of_connection(TimeoutError()).message == "connection failed: TimeoutError"
