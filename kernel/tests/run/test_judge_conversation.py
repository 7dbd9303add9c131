"""What all judges share: checked answers, reminders, retries within the time limit, and counting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import pytest

from vally import (
    CallTokens,
    Cost,
    EndpointError,
    JudgeAnswer,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    OptionalParameters,
    SubmittedCall,
    ToolSchema,
    ask_judge,
    judge_reminder,
    submitted_call,
)
from vally.run import judge_conversation

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 5}, "notes": {"type": "array"}},
    "required": ["score"],
    "additionalProperties": False,
}
USAGE = CallTokens(input_tokens=10, output_tokens=1)
TEXT = JudgeAnswer(problem="it has no call of submit", usage=USAGE)
TOO_MANY = EndpointError("HTTP 429: slow down", retryable=True, retry_after_s=0)


def call(**arguments: Any) -> SubmittedCall:
    return SubmittedCall(arguments=arguments)


def answer(*calls: SubmittedCall, **fields: Any) -> JudgeAnswer:
    return JudgeAnswer(calls=calls, **{"usage": USAGE, **fields})


class Scripted:
    """A conversation whose answers are given, the last one for ever."""

    def __init__(self, *answers: JudgeAnswer | Exception) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.reminders: list[Sequence[str]] = []

    async def ask(self) -> JudgeAnswer:
        self.asked += 1
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    def remind(self, problems: Sequence[str]) -> None:
        self.reminders.append(problems)


def refuse_three(args: Mapping[str, object]) -> str | None:
    return "three is not allowed" if args["score"] == 3 else None


def request(**fields: Any) -> JudgeRequest:
    tool = ToolSchema(name="submit", description="submit it", parameters=SCHEMA)
    facts = {"model": "m", "system_message": "s", "user_message": "u", "tool": tool, "check": refuse_three, **fields}
    return JudgeRequest(**facts)


def ask(conversation: Any, **fields: Any) -> JudgeReply:
    return anyio.run(ask_judge, request(**fields), conversation)


def failure(conversation: Any, **fields: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(conversation, **fields)
    return caught.value


def test_the_first_valid_call_counts() -> None:
    calls = [SubmittedCall(problem="no JSON"), call(score=3), call(score=4), call(score=5)]
    reply = ask(Scripted(answer(*calls)))
    assert (dict(reply.args), reply.reminders_used, reply.model, reply.usage) == ({"score": 4}, 0, "m", USAGE)


def test_reminders_say_what_is_wrong_with_each_call() -> None:
    conversation = Scripted(TEXT, answer(call(score=9), call(score=3)), answer(call(score=1)))
    reply = ask(conversation)
    assert reply.reminders_used == 2
    assert reply.usage == CallTokens(input_tokens=30, output_tokens=3)
    assert conversation.reminders == [
        ["it has no call of submit"],
        ["score: 9 is greater than the maximum of 5", "three is not allowed"],
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'score' is a required property"),
        ({"score": "4"}, "score: '4' is not of type 'number'"),
        ({"score": 4, "extra": 1}, "Additional properties are not allowed ('extra' was unexpected)"),
        ({"score": 4, "notes": 1}, "notes: 1 is not of type 'array'"),
        ({"score": 3}, "three is not allowed"),
    ],
)
def test_arguments_must_fit_schema_and_check(arguments: dict[str, Any], problem: str) -> None:
    error = failure(Scripted(answer(call(**arguments))))
    assert (error.kind, error.message) == ("malformed", problem)
    assert error.usage == {"input_tokens": 30, "output_tokens": 3}


def test_a_long_problem_is_one_short_line() -> None:
    error = failure(Scripted(answer(call(score="x\n" * 5000))))
    assert len(error.message) < 600
    assert "\n" not in error.message


def test_the_number_of_reminders_is_that_of_the_request() -> None:
    conversation = Scripted(TEXT)
    assert failure(conversation, max_reminders=0).message == "it has no call of submit"
    assert conversation.asked == 1


def test_an_answer_without_anything_is_named() -> None:
    assert failure(Scripted(JudgeAnswer())).message == "it did not call submit"


def test_costs_sum_up_also_for_failures() -> None:
    price = Cost(provider="p", unit="usd", amount=0.5)
    assert ask(Scripted(answer(cost=price), answer(call(score=1), cost=price))).cost == Cost(
        provider="p", unit="usd", amount=1
    )
    error = failure(Scripted(answer(cost=price)))
    assert error.cost is not None
    assert error.cost.amount == 1.5


def test_what_passes_is_tried_again() -> None:
    conversation = Scripted(TOO_MANY, TOO_MANY, answer(call(score=1)))
    reply = ask(conversation)
    assert (reply.reminders_used, reply.usage, conversation.asked) == (0, USAGE, 3)


def test_after_the_last_retry_the_cause_is_told() -> None:
    conversation = Scripted(TOO_MANY)
    error = failure(conversation)
    assert (error.kind, error.message, conversation.asked) == ("transport", "HTTP 429: slow down", 5)


def test_each_answer_has_its_own_retries() -> None:
    conversation = Scripted(*[TOO_MANY] * 4, TEXT, *[TOO_MANY] * 4, answer(call(score=1)))
    assert ask(conversation).reminders_used == 1


def test_what_does_not_pass_is_not_tried_again() -> None:
    conversation = Scripted(TEXT, EndpointError("HTTP 401: no"))
    error = failure(conversation)
    assert (error.kind, error.message, conversation.asked) == ("transport", "HTTP 401: no", 2)
    assert error.usage == {"input_tokens": 10, "output_tokens": 1}


def test_retries_wait_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_conversation.RETRY_DELAYS_S == (1, 2, 4, 8)
    monkeypatch.setattr(judge_conversation, "RETRY_DELAYS_S", (0.05, 0.1))
    began = time.monotonic()
    failure(Scripted(EndpointError("down", retryable=True)))
    assert time.monotonic() - began >= 0.15 * 0.8


@pytest.mark.parametrize("told", [None, 300.0])
def test_no_wait_that_does_not_fit_into_the_time(told: float | None) -> None:
    conversation = Scripted(EndpointError("HTTP 503", retryable=True, retry_after_s=told))
    error = failure(conversation, timeout_s=0.5)
    assert (error.kind, error.message, conversation.asked) == ("transport", "HTTP 503", 1)


def test_a_wait_that_was_asked_for_and_does_not_fit_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_conversation, "RETRY_DELAYS_S", (0.01,))
    error = EndpointError("HTTP 503", retryable=True, retry_after_s=300.0)
    assert ask(Scripted(error, answer(call(score=1))), timeout_s=30).args == {"score": 1}


def test_the_time_limit_covers_everything() -> None:
    class Hanging(Scripted):
        async def ask(self) -> JudgeAnswer:
            if self.asked:
                await anyio.sleep_forever()
            return await super().ask()

    error = failure(Hanging(TEXT), timeout_s=0.1)
    assert (error.kind, error.message) == ("timeout", "no valid answer within 0.1s")
    assert error.usage == {"input_tokens": 10, "output_tokens": 1}


def test_other_exceptions_are_failures_of_the_transport() -> None:
    error = failure(Scripted(TEXT, ZeroDivisionError()))
    assert (error.kind, error.message) == ("transport", "ZeroDivisionError")
    assert error.usage == {"input_tokens": 10, "output_tokens": 1}


@pytest.mark.parametrize(
    ("given", "arguments", "problem"),
    [
        ('{"score": 1}', {"score": 1}, None),
        ({"score": 1}, {"score": 1}, None),
        ("[1]", None, "the arguments are not a JSON object"),
        (None, None, "the arguments are not a JSON object"),
        ("", None, "the arguments are not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"score": NaN}', None, "the arguments are not valid JSON: NaN is not a number"),
        ("[" * 100_000, None, "the arguments are not valid JSON: "),
    ],
    ids=["text", "object", "list", "nothing", "empty", "nan", "deep"],
)
def test_arguments_of_a_call(given: Any, arguments: Any, problem: str | None) -> None:
    found = submitted_call(given)
    assert found.arguments == arguments
    assert (found.problem or "").startswith(problem or "")
    assert (found.problem is None) is (problem is None)


def test_reminders() -> None:
    assert judge_reminder("submit", "score is missing") == (
        "Your answer was not accepted: score is missing. Call submit exactly once, with valid arguments."
    )
    assert "one JSON object" in judge_reminder("submit", "it is empty", as_json=True)


OPTIONAL = {"temperature": 0, "seed": None, "reasoning": "high", "tool_choice": "forced"}
WORDS = {name: (name,) for name in OPTIONAL}


def refusing(*bodies: str, status: int = 400) -> tuple[list[Mapping[str, Any]], Callable[[Mapping[str, Any]], Any]]:
    """Requests that were made, and a function that refuses the first ones with these bodies."""
    made: list[Mapping[str, Any]] = []
    left = list(bodies)

    async def send(sent: Mapping[str, Any]) -> str:
        made.append(sent)
        if left:
            raise EndpointError.of_status(status, left.pop(0), {})
        return "answer"

    return made, send


def test_what_is_refused_is_left_out_and_remembered_for_its_model() -> None:
    parameters = OptionalParameters(WORDS)
    made, send = refusing(
        '{"error": {"param": "tool_choice", "message": "not with temperature"}}',
        "temperature is not for reasoning models",
    )
    for model in ("a", "a", "b"):
        assert anyio.run(parameters.send, model, OPTIONAL, send) == "answer"
    assert [list(sent) for sent in made] == [
        ["temperature", "reasoning", "tool_choice"],
        ["temperature", "reasoning"],
        ["reasoning"],
        ["reasoning"],
        ["temperature", "reasoning", "tool_choice"],
    ]


@pytest.mark.parametrize(
    ("status", "body"), [(400, "the context is too long"), (400, "subtemperature"), (401, "temperature"), (400, "seed")]
)
def test_other_refusals_are_errors(status: int, body: str) -> None:
    made, send = refusing(body, status=status)
    with pytest.raises(EndpointError):
        anyio.run(OptionalParameters(WORDS).send, "m", OPTIONAL, send)
    assert len(made) == 1


def test_leaving_out_what_somebody_asked_for_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    parameters = OptionalParameters(WORDS, wanted_by_users=["reasoning"])
    _, send = refusing("no temperature", "no reasoning")
    anyio.run(parameters.send, "m", OPTIONAL, send)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "model 'm' does not accept reasoning; it is left out"
    ]
